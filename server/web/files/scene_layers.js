// SPDX-License-Identifier: Apache-2.0
// What may lie over a scene's picture: what a version changed, the costmap, distances at a height,
// volumes, poses; and the section that cuts the scene open. Each is fetched when it is switched on, and again
// when the scene changes.
import { sameColour } from './layers.js';
import { clamp } from './math.js';
import { el, metres, numbers, ramp, tensor } from './names.js';
import { call, getJson } from './session.js';
import { CHANGES } from './timeline.js';
import { Poses } from './poses.js';
import { VolumeMesh } from './volume_mesh.js';

const MOST_CELLS = 200000; // of changes
const FIELD_SIDE = 120; // distances a side
const FIELD_ROWS = 5000; // of a request: JSON carries 64 KiB of an array
const AXES = ['x', 'y', 'z'];

// nav2's costs as RViz shows them.
function costColour(cost) {
  if (cost === 0) return [0, 0, 0, 0];
  if (cost === 255) return [112, 137, 134, 130];
  if (cost === 254) return [255, 0, 255, 230];
  if (cost === 253) return [0, 240, 240, 215];
  return [Math.round(cost), 0, 255 - Math.round(cost), 190];
}

export class SceneLayers {
  constructor(page) {
    this.page = page;
    this.on = new Set();
    this.volumes = new Map(); // name -> VolumeMesh
    this.poses = new Poses({ setLayer: (name, layer) => this.view.setLayer(name, layer) }, (...why) => page.app.fail(...why));
    this.height = null;
    this.cut = { axis: -1, share: 0.5, keepsLow: true };
    this.element = el('section', { 'aria-label': 'Layers' }, el('h2', {}, 'Layers'), this.buildRows(), this.buildHeight(),
      el('h2', { class: 'later' }, 'Section'), this.buildSection());
  }

  get view() {
    return this.page.view;
  }

  close() {
    for (const mesh of this.volumes.values()) mesh.close();
    this.poses.close();
  }

  // --- elements -------------------------------------------------------------------------------

  row(name, text, ...more) {
    const box = el('input', { type: 'checkbox', id: `layer-${name}`, onchange: () => this.toggle(name, box.checked) });
    return el('div', { class: 'check' }, box, el('label', { for: `layer-${name}` }, text), ...more);
  }

  buildRows() {
    this.legend = el('div', { class: 'legend', hidden: true }, ...CHANGES.map(([, variable, word]) => {
      const item = el('span', {}, word);
      item.style.setProperty('--c', `var(${variable})`);
      return item;
    }));
    this.volumeRows = el('div', {});
    return el('div', {}, this.row('changes', 'What this version changed'), this.legend,
      this.row('costmap', 'Costmap'), this.row('distance', 'Distances to obstacles'), this.volumeRows, this.poses.element);
  }

  buildHeight() {
    this.heightText = el('output', { class: 'num' });
    this.heightInput = el('input', { type: 'range', min: '0', max: '1000', value: '100', id: 'layer-height', oninput: () => this.setHeight() });
    this.heightRow = el('div', { class: 'slider', hidden: true }, el('label', { for: 'layer-height' }, 'Height'), this.heightInput, this.heightText);
    return this.heightRow;
  }

  buildSection() {
    this.axisButtons = ['Off', ...AXES].map((text, i) => el('button', {
      type: 'button', 'aria-pressed': String(i === 0), title: i === 0 ? 'Nothing is cut' : `Cut across ${text}`,
      onclick: () => this.setCut({ axis: i - 1 }),
    }, text));
    this.cutInput = el('input', { type: 'range', min: '0', max: '1000', value: '500', id: 'section-place', oninput: () => this.setCut({ share: Number(this.cutInput.value) / 1000 }) });
    this.cutText = el('output', { class: 'num' });
    this.flipButton = el('button', { type: 'button', title: 'The other half', onclick: () => this.setCut({ keepsLow: !this.cut.keepsLow }) }, 'Flip');
    this.cutRow = el('div', { class: 'slider', hidden: true }, el('label', { for: 'section-place' }, 'Place'), this.cutInput, this.cutText, this.flipButton);
    return el('div', {}, el('div', { class: 'segments four' }, ...this.axisButtons), this.cutRow);
  }

  // The volumes, pose graphs and odometries that there are, as rows.
  async loadOthers() {
    this.poses.load().catch(() => null);
    const { volumes = [] } = await getJson('/v1/volumes');
    this.volumeRows.replaceChildren(...volumes.map((v) => this.row(`volume-${v.name}`, `Volume ${v.name}`)));
  }

  // --- switching ------------------------------------------------------------------------------

  toggle(name, isOn) {
    if (isOn) this.on.add(name);
    else this.on.delete(name);
    this.legend.hidden = !this.on.has('changes');
    this.heightRow.hidden = !this.on.has('costmap') && !this.on.has('distance');
    if (!isOn) {
      this.view.setLayer(name, null);
      this.volumes.get(name)?.close();
      this.volumes.delete(name);
    } else {
      this.refresh(name);
    }
  }

  // After a change of the scene, of the version or of the height.
  refreshAll() {
    for (const name of this.on) if (!name.startsWith('volume-')) this.refresh(name);
  }

  async refresh(name) {
    this.again ??= new Set();
    this.busy ??= new Set();
    if (this.busy.has(name)) {
      this.again.add(name);
      return;
    }
    this.busy.add(name);
    try {
      const layer = name.startsWith('volume-') ? this.startVolume(name)
        : await { changes: () => this.changes(), costmap: () => this.costmap(), distance: () => this.distances() }[name]();
      if (layer !== undefined && this.on.has(name)) this.view.setLayer(name, layer);
    } catch (error) {
      this.page.app.fail(error, 'The layer cannot be shown');
    }
    this.busy.delete(name);
    if (this.again.delete(name) && this.on.has(name)) this.refresh(name);
  }

  startVolume(name) {
    const mesh = new VolumeMesh(name.slice('volume-'.length), (layer) => this.on.has(name) && this.view.setLayer(name, layer),
      (state, error) => { if (error) this.page.app.fail(error, 'The volume cannot be shown'); });
    this.volumes.set(name, mesh);
  }

  // --- what they show -------------------------------------------------------------------------

  async changes() {
    const { versions, index } = this.page.timeline;
    if (index < 1) return null;
    const at = (i) => ({ version: versions[i].version });
    const depth = this.page.info.spec.depth || 17;
    let reply;
    for (let level = 0; level <= depth; level++) {
      reply = await call('scene_diff', { name: this.page.name, from: at(index - 1), to: at(index), level, limit: MOST_CELLS });
      if (Number(reply.nCells || 0) <= MOST_CELLS) break;
    }
    const cells = numbers(reply.cells);
    const kinds = numbers(reply.changes);
    const style = getComputedStyle(this.page.element);
    const colours = CHANGES.map(([, variable, , bit]) => [bit, style.getPropertyValue(variable)])
      .map(([bit, text]) => [bit, [1, 3, 5].map((i) => parseInt(text.trim().slice(i, i + 2), 16))]);
    const positions = new Float32Array(cells.length);
    const rgba = new Uint8Array(4 * kinds.length);
    for (let i = 0; i < cells.length; i++) positions[i] = (cells[i] + 0.5) * reply.cellSizeM;
    for (let i = 0; i < kinds.length; i++) {
      const [, rgb] = colours.find(([bit]) => kinds[i] & bit) || [0, [128, 128, 128]];
      rgba.set([...rgb, 255], 4 * i);
    }
    const o = reply.origin || {};
    return kinds.length === 0 ? null
      : { kind: 'points', origin: [o.x || 0, o.y || 0, o.z || 0], positions, colours: rgba, size: reply.cellSizeM * 1.15, hidden: 0.35, alpha: 0.9 };
  }

  // At least a box of the ground's extent.
  get box() {
    const o = this.page.info.spec.origin || {};
    const low = [o.x || 0, o.y || 0, o.z || 0];
    return this.page.occupied || [low, low.map((x) => x + this.page.size)];
  }

  setHeight() {
    this.readHeight();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.refreshAll(), 120);
  }

  // Just above the ground, which is the middle one of the columns' heights.
  async findHeight() {
    const [low, high] = this.box;
    const reply = await call('scene_grid', {
      name: this.page.name, at: this.view.atOf, kind: 'GRID_HEIGHT',
      box: { low: { x: low[0], y: low[1], z: low[2] }, high: { x: high[0], y: high[1], z: high[2] } },
    });
    const heights = [...numbers(reply.high)].filter((z) => !Number.isNaN(z)).sort((a, b) => a - b);
    const ground = heights.length ? heights[heights.length >> 1] : low[2];
    const share = (ground + 0.3 - low[2]) / (high[2] - low[2] || 1);
    this.heightInput.value = String(Math.round(1000 * clamp(share, 0, 1)));
    this.readHeight();
  }

  readHeight() {
    const [low, high] = this.box;
    this.height = low[2] + (high[2] - low[2]) * Number(this.heightInput.value) / 1000;
    this.heightText.textContent = metres(this.height);
  }

  async costmap() {
    if (this.height === null) await this.findHeight();
    const [low, high] = this.box;
    const reply = await call('scene_grid', {
      name: this.page.name, at: this.view.atOf, kind: 'GRID_COSTMAP', zLow: this.height,
      zHigh: Math.max(Math.min(this.height + 1.5, high[2]), this.height + this.page.info.spec.voxelSizeM), robotRadiusM: 0.3, inflationRadiusM: 1,
      box: { low: { x: low[0], y: low[1], z: low[2] }, high: { x: high[0], y: high[1], z: high[2] } },
    });
    const costs = numbers(reply.cells);
    const data = new Uint8Array(4 * costs.length);
    for (let i = 0; i < costs.length; i++) data.set(costColour(costs[i]), 4 * i);
    return this.flat(reply.nX, reply.nY, data, [reply.origin.x || 0, reply.origin.y || 0], reply.cellSizeM);
  }

  flat(width, height, data, [x, y], cell) {
    return {
      kind: 'image', corner: [x, y, this.height], u: [width * cell, 0, 0], v: [0, height * cell, 0],
      pixels: { width, height, data }, hidden: 0.45, alpha: 0.85,
    };
  }

  async distances() {
    if (this.height === null) await this.findHeight();
    const [low, high] = this.box;
    const cell = Math.max(high[0] - low[0], high[1] - low[1]) / FIELD_SIDE;
    const nX = Math.max(1, Math.round((high[0] - low[0]) / cell));
    const nY = Math.max(1, Math.round((high[1] - low[1]) / cell));
    const points = new Float32Array(3 * nX * nY);
    for (let i = 0; i < nX * nY; i++) {
      points.set([low[0] + (i % nX + 0.5) * cell, low[1] + (Math.floor(i / nX) + 0.5) * cell, this.height], 3 * i);
    }
    const found = new Float32Array(nX * nY);
    let most = 2;
    for (let i = 0; i < found.length; i += FIELD_ROWS) {
      const part = points.subarray(3 * i, 3 * (i + FIELD_ROWS));
      const reply = await call('scene_distance', { name: this.page.name, at: this.view.atOf, points: tensor(part, [part.length / 3, 3]) });
      found.set(numbers(reply.distances), i);
      most = reply.maxDistanceM || most;
    }
    const data = new Uint8Array(4 * nX * nY);
    for (let i = 0; i < found.length; i++) {
      const d = found[i];
      data.set(Number.isNaN(d) ? [0, 0, 0, 0] : d <= 0 ? [40, 40, 46, 235] : [...ramp(1 - clamp(d / most, 0, 1)), 205], 4 * i);
    }
    return this.flat(nX, nY, data, [low[0], low[1]], cell);
  }

  // --- the section ----------------------------------------------------------------------------

  setCut(change) {
    this.cut = { ...this.cut, ...change };
    const { axis, share, keepsLow } = this.cut;
    this.axisButtons.forEach((b, i) => b.setAttribute('aria-pressed', String(i - 1 === axis)));
    this.cutRow.hidden = axis < 0;
    if (axis < 0) {
      this.view.clip = null;
    } else {
      const [low, high] = this.box.map((v) => [...v]);
      const place = low[axis] + (high[axis] - low[axis]) * share;
      if (keepsLow) high[axis] = Math.max(place, low[axis] + this.page.info.spec.voxelSizeM);
      else low[axis] = Math.min(place, high[axis] - this.page.info.spec.voxelSizeM);
      this.view.clip = [low, high].map((v) => v.map((x) => +x.toFixed(4)));
      this.cutText.textContent = metres(place);
    }
    this.view.draw(true);
  }
}

// A layer of points for cells, one colour each.
export function cellLayer(origin, positions, colours, size) {
  return { kind: 'points', origin, positions, colours: colours || sameColour(positions.length / 3, [255, 213, 74, 255]), size, hidden: 0.2 };
}
