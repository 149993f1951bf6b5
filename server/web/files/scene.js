// SPDX-License-Identifier: Apache-2.0
// One scene: the view, what is picked, versions, and painting. All of it is live: a change of
// anybody's is a new picture here.
import './viewer.js';
import { length, sub } from './math.js';
import { ago, bytes, count, el, fallbackColour, hex, metres, ms } from './names.js';
import { Scan } from './scan.js';
import { SceneLayers } from './scene_layers.js';
import { call, getJson, Stream } from './session.js';
import { kindOf, makerOf, Timeline } from './timeline.js';
import { Tools } from './tools.js';

const MODES = [['colour', 'Colour'], ['height', 'Height'], ['depth', 'Depth'],
  ['normal', 'Normal'], ['ao', 'Openness'], ['age', 'Age'], ['label', 'Label']];
const TOOLS = [
  ['orbit', 'Look', 'L', 'Turn and move; a click says what is there'],
  ['measure', 'Measure', 'M', 'Two clicks give a distance'],
  ['paint', 'Paint', 'B', 'Adds a ball of the chosen material'],
  ['erase', 'Erase', 'X', 'Takes a ball away'],
  ['box', 'Box', 'K', 'Fills a box from corner to corner'],
  ['copy', 'Copy', 'C', 'Copies a box to other places'],
];
const CHANGING = ['paint', 'erase', 'box', 'copy'];

const HELP = [
  ['drag', 'turn'], ['right drag, Shift + drag', 'move sideways'], ['wheel, + and -', 'nearer and farther'],
  ['W A S D, Q E', 'fly; Shift is faster'], ['arrows', 'turn'], ['double click', 'focus what is there'],
  ['click', 'what is there, who made it and when'], ['L M B X K C', 'look, measure, paint, erase, box, copy'],
  ['1 to 7', 'colour, height, depth, normal, openness, age, label'], [', and .', 'older and newer version'], ['[ and ]', 'smaller and larger brush'],
  ['Ctrl + Z, Ctrl + Y', 'undo and redo, of your own changes'], ['R', 'the whole scene'],
  ['Alt + drag', 'turn while painting'], ['T', 'light or dark'], ['?', 'this help'],
];

// What the address says: camera, mode, version.
function readAddress(text) {
  const query = new URLSearchParams(text);
  const vector = (key) => (query.get(key) || '').split(',').map(Number);
  return {
    eye: query.has('eye') ? vector('eye') : null,
    look: query.has('look') ? vector('look') : null,
    mode: query.get('mode') || 'colour',
    at: /^[a-z0-9][a-z0-9._-]{0,62}$/.test(query.get('at') || '') ? query.get('at') : '',
  };
}

class ScenePage {
  constructor(app, name, address) {
    this.app = app;
    this.name = name;
    this.path = `/v1/scenes/${name}`;
    this.info = null;
    this.version = 0;
    this.occupied = null; // [low, high] of what there is, metres
    this.tool = 'orbit';
    this.material = 1;
    this.radius = 0.2;
    this.picks = [];
    this.tools = new Tools(this);
    const asked = readAddress(address);
    this.at = asked.at;
    this.build(asked);
    this.load().then(() => this.firstView(asked));
    this.onKey = (event) => this.key(event);
    addEventListener('keydown', this.onKey);
  }

  // That something has changed is enough: one cell as large as the scene says it.
  listen(depth) {
    if (this.depth === depth) return;
    this.depth = depth;
    this.stream?.close();
    this.stream = new Stream(`${this.path}/watch?level=${depth}&max_bytes=13`,
      (kind, reply) => this.notice(kind, reply), this.app.setLive);
  }

  leave() {
    this.stream?.close();
    clearTimeout(this.addressTimer);
    this.layers.close();
    this.timeline.close();
    removeEventListener('keydown', this.onKey);
  }

  // --- elements -----------------------------------------------------------------------------

  build(asked) {
    this.view = el('voxel-view', { src: this.path });
    this.view.mode = MODES.some(([m]) => m === asked.mode) ? asked.mode : 'colour';
    this.view.at = this.at;
    this.view.dataset.tool = 'orbit';
    this.view.waits = true;
    this.view.addEventListener('frame', (event) => this.frame(event.detail));
    this.view.addEventListener('fault', (event) => this.fault(event.detail));
    this.view.addEventListener('move', () => this.keepAddress());
    this.view.addEventListener('act', (event) => this.act(event.detail));
    this.timeline = new Timeline((at) => this.setAt(at));
    this.timeline.at = this.at;
    this.layers = new SceneLayers(this);
    this.scan = new Scan(this);
    this.frameText = el('div', { hidden: true });
    this.stateText = el('div', { role: 'status', hidden: true });
    const hud = el('div', { class: 'hud' }, this.frameText, this.stateText);
    this.element = el('div', { class: 'stage' },
      el('div', { class: 'view' }, this.view, hud, this.buildTools()),
      this.buildSide(), this.timeline.element, this.buildHelp());
    this.scan.listen(this.element);
  }

  buildTools() {
    this.toolButtons = TOOLS.map(([tool, text, key, title]) => {
      const button = el('button', {
        type: 'button', title: `${title} (${key})`, 'aria-pressed': String(tool === this.tool),
        onclick: () => this.setTool(tool),
      }, text);
      button.dataset.tool = tool;
      if (CHANGING.includes(tool)) button.disabled = !this.app.canWrite;
      return button;
    });
    this.undoButton = el('button', { type: 'button', title: 'Undo your last change (Ctrl + Z)', disabled: !this.app.canWrite, onclick: () => this.tools.takeBack('scene_undo') }, 'Undo');
    this.redoButton = el('button', { type: 'button', title: 'Redo (Ctrl + Y)', disabled: !this.app.canWrite, onclick: () => this.tools.takeBack('scene_redo') }, 'Redo');
    return el('div', { class: 'tools', role: 'toolbar', 'aria-label': 'Tools' }, ...this.toolButtons,
      el('span', { class: 'sep' }), this.undoButton, this.redoButton, el('span', { class: 'sep' }),
      el('button', { type: 'button', title: 'The whole scene (R)', onclick: () => this.home() }, 'Whole'),
      el('button', { type: 'button', title: 'Help (?)', 'aria-label': 'Help', onclick: () => this.help.showModal() }, '?'));
  }

  buildSide() {
    this.facts = el('dl', { class: 'facts-list' });
    this.picked = el('dl', { class: 'facts-list' });
    this.pickedText = el('p', { class: 'dim' }, 'Click on something.');
    this.modeButtons = MODES.map(([mode, text], i) => el('button', {
      type: 'button', title: `${text} (${i + 1})`, 'aria-pressed': String(mode === this.view.mode),
      onclick: () => this.setMode(mode),
    }, text));
    this.swatches = el('div', { class: 'swatches', role: 'group', 'aria-label': 'Material' });
    this.materialText = el('span', { class: 'dim' });
    this.radiusText = el('output', { class: 'num' });
    this.radiusInput = el('input', { type: 'range', min: '-100', max: '100', value: '0', id: 'brush-radius', oninput: () => this.setRadius() });
    this.brush = el('section', { hidden: !this.app.canWrite }, el('h2', {}, 'Brush'),
      el('div', { class: 'row' }, el('span', {}, 'Material'), el('span', { class: 'spacer' }), this.materialText),
      this.swatches,
      el('div', { class: 'slider' }, el('label', { for: 'brush-radius' }, 'Radius'), this.radiusInput, this.radiusText));
    return el('aside', { class: 'side', 'aria-label': 'Scene' },
      el('section', {}, el('h1', { class: 'scene-name' }, this.name), this.facts),
      el('section', {}, el('h2', {}, 'Show'), el('div', { class: 'segments' }, ...this.modeButtons)),
      el('section', { 'aria-live': 'polite' }, el('h2', {}, 'Picked'), this.pickedText, this.picked),
      this.brush, this.layers.element, this.scan.element,
      this.app.canWrite ? null : el('p', { class: 'dim' }, 'Your token does not have the scope write: you can look and measure.'));
  }

  buildHelp() {
    this.help = el('dialog', { 'aria-label': 'Help' }, el('h2', {}, 'Keys and mouse'),
      el('dl', {}, ...HELP.flatMap(([keys, what]) => [el('dt', {}, el('kbd', {}, keys)), el('dd', {}, what)])),
      el('form', { method: 'dialog', class: 'row end' }, el('button', { class: 'primary' }, 'Close')));
    return this.help;
  }

  // --- the scene ----------------------------------------------------------------------------

  async load() {
    try {
      const { scene } = await getJson(this.path);
      this.info = scene;
      this.version = Number(scene.version);
      this.size = scene.spec.voxelSizeM * 2 ** (scene.spec.depth || 17);
      this.listen(scene.spec.depth || 17);
      this.showFacts();
      this.showPalette();
      this.setRadius();
      await this.timeline.load(call, this.name);
      this.showVersion();
      this.layers.loadOthers().catch(() => null);
    } catch (error) {
      this.state(error.status === 404 ? 'There is no such scene.' : error.message);
      this.app.fail(error);
    }
  }

  showFacts() {
    const s = this.info;
    const rows = [
      ['voxels', count(s.nOccupied || 0)], ['voxel', metres(s.spec.voxelSizeM)], ['side', metres(this.size)],
      ['memory', bytes(s.nBytes || 0)], ['version', `${this.version}`], ['changed', ago(s.changedNs)],
      ['kept', s.durability ? 'on disk' : 'in memory'],
    ];
    if (s.spec.frameId) rows.push(['frame', s.spec.frameId]);
    this.facts.replaceChildren(...rows.flatMap(([k, v]) => [el('dt', {}, k), el('dd', {}, v)]));
  }

  colourOf(material) {
    const entry = (this.info?.spec.palette || [])[material];
    return entry ? hex(entry.rgb || 0) : fallbackColour(material);
  }

  nameOf(material) {
    return (this.info?.spec.palette || [])[material]?.name || '';
  }

  showPalette() {
    const bits = this.info.spec.materialBits || 0;
    const palette = this.info.spec.palette || [];
    const n = bits === 0 ? 0 : Math.max(palette.length, Math.min(2 ** bits, 16));
    this.material = Math.min(this.material, Math.max(n - 1, 0));
    this.swatches.replaceChildren(...Array.from({ length: Math.min(n, 256) }, (_, i) => {
      const button = el('button', {
        class: 'swatch', type: 'button', title: this.nameOf(i) ? `${i}: ${this.nameOf(i)}` : `${i}`,
        'aria-label': `Material ${i} ${this.nameOf(i)}`, 'aria-pressed': String(i === this.material),
        onclick: () => this.setMaterial(i),
      });
      button.style.backgroundColor = this.colourOf(i);
      return button;
    }));
    this.setMaterial(this.material);
    this.swatches.hidden = n === 0;
  }

  showVersion() {
    this.timeline.show(this.at);
    const mayEdit = this.app.canWrite && !this.at;
    for (const button of this.toolButtons) {
      if (CHANGING.includes(button.dataset.tool)) button.disabled = !mayEdit;
    }
    if (!mayEdit && CHANGING.includes(this.tool)) this.setTool('orbit');
    this.layers.refreshAll();
  }

  setAt(at) {
    if (this.at === at) return;
    this.at = at;
    this.view.at = at;
    this.view.draw(true);
    this.showVersion();
    this.keepAddress();
  }

  // The watch has an event: the picture is of the newest version, unless another was chosen.
  notice(kind, reply) {
    if (kind === 'dropped') {
      this.state('This scene was dropped. When the name is given again, it is shown.');
      return;
    }
    const version = Number(reply.toVersion || reply.next.version);
    const isNew = kind !== 'resync' || version !== this.version;
    this.state('');
    if (kind === 'created') this.load();
    this.version = version;
    if (!isNew) return;
    if (!this.at) this.view.draw();
    clearTimeout(this.refreshTimer);
    this.refreshTimer = setTimeout(() => this.refresh(), 400);
  }

  async refresh() {
    if (!this.info) return;
    try {
      const { scene } = await getJson(this.path);
      this.info = scene;
      this.version = Number(scene.version);
      this.showFacts();
      await this.timeline.load(call, this.name);
      this.showVersion();
    } catch (error) {
      if (error.status !== 404) this.app.fail(error);
    }
  }

  // --- the view -----------------------------------------------------------------------------

  async firstView(asked) {
    if (this.info && asked.eye && asked.look) {
      this.view.depth = this.info.spec.depth || 17;
      this.occupied = await this.view.fit().catch(() => null);
      this.view.setView(asked.eye, asked.look);
    }
    if (!this.view.hasView) await this.home();
    this.view.waits = false;
    this.view.draw();
  }

  async home() {
    if (!this.info) return;
    this.view.depth = this.info.spec.depth || 17;
    this.occupied = await this.view.fit().catch(() => null);
    if (!this.occupied) this.view.lookAtBox(...this.layers.box);
    this.keepAddress();
  }

  frame({ width, height, ms: took, perSecond }) {
    this.frameText.hidden = false;
    this.frameText.textContent = `${width} × ${height}, ${ms(took)}${perSecond >= 4 ? `, ${Math.round(perSecond)} a second` : ''}`;
    this.view.dataset.frames = String(Number(this.view.dataset.frames || 0) + 1);
  }

  fault(error) {
    if (error.status === 404) this.state(this.at ? `Version ${this.at} is not kept any more.` : 'There is no such scene.');
    else this.app.fail(error, 'No picture');
  }

  state(text) {
    this.stateText.textContent = text;
    this.stateText.hidden = !text;
  }

  keepAddress() {
    clearTimeout(this.addressTimer);
    this.addressTimer = setTimeout(() => {
      const c = this.view.camera;
      const query = new URLSearchParams();
      if (this.view.hasView) {
        query.set('eye', c.eye.map((x) => x.toFixed(3)).join(','));
        query.set('look', c.target.map((x) => x.toFixed(3)).join(','));
      }
      if (this.view.mode !== 'colour') query.set('mode', this.view.mode);
      if (this.at) query.set('at', this.at);
      const text = query.toString().replaceAll('%2C', ',');
      history.replaceState(null, '', `#/scene/${this.name}${text ? `?${text}` : ''}`);
    }, 150);
  }

  setMode(mode) {
    this.view.mode = mode;
    this.modeButtons.forEach((b, i) => b.setAttribute('aria-pressed', String(MODES[i][0] === mode)));
    this.view.draw();
    this.keepAddress();
  }

  // --- tools --------------------------------------------------------------------------------

  setTool(tool) {
    const button = this.toolButtons.find((b) => b.dataset.tool === tool);
    if (button.disabled) return;
    this.tool = tool;
    this.view.tool = tool;
    this.view.dataset.tool = tool;
    this.picks = [];
    this.view.marks = [];
    this.tools.reset();
    this.tools.say(tool);
    this.toolButtons.forEach((b) => b.setAttribute('aria-pressed', String(b === button)));
    this.showBrush();
  }

  setMaterial(material) {
    this.material = material;
    [...this.swatches.children].forEach((b, i) => b.setAttribute('aria-pressed', String(i === material)));
    this.materialText.textContent = this.info?.spec.materialBits ? `${material} ${this.nameOf(material)}` : 'none';
  }

  // The slider goes from a voxel to a twentieth of the scene, in equal ratios.
  setRadius(step = 0) {
    const voxel = this.info?.spec.voxelSizeM || 0.1;
    const low = voxel;
    const high = Math.max(voxel * 2 ** 10, voxel * 2);
    this.radiusInput.value = String(Number(this.radiusInput.value) + step);
    const t = (Number(this.radiusInput.value) + 100) / 200;
    this.radius = low * (high / low) ** (t * 0.8);
    this.radiusText.textContent = metres(this.radius);
    this.showBrush();
  }

  showBrush() {
    const paints = this.tool === 'paint' || this.tool === 'erase';
    const c = this.view.camera;
    const perMetre = this.view.clientHeight / (2 * c.distance * Math.tan(c.fov * Math.PI / 360));
    this.view.brushPixels = paints ? Math.max(3, this.radius * perMetre) : 0;
    this.view.paintOverlay();
  }

  async act({ phase, place }) {
    if (CHANGING.includes(this.tool)) {
      await this.tools.act(this.tool, phase, place);
      return;
    }
    if (phase !== 'click' && phase !== 'start') return;
    try {
      const hit = await this.view.cast(place);
      this.showPicked(hit);
      if (hit) this.showMaker(hit);
      if (this.tool === 'measure') this.measure(hit);
      else this.view.marks = hit ? [{ points: [hit.point] }] : [];
      this.view.paintOverlay();
    } catch (error) {
      this.app.fail(error, 'Nothing could be picked');
    }
  }

  showPicked(hit) {
    this.pickedText.hidden = Boolean(hit);
    this.picked.hidden = !hit;
    if (!hit) {
      this.pickedText.textContent = 'Nothing is there.';
      return;
    }
    const number = (x) => x.toFixed(3);
    const rows = [
      ['x, y, z', `${hit.point.map(number).join(', ')} m`], ['voxel', hit.voxel.join(', ')],
      ['away', metres(hit.distance)],
    ];
    if (hit.material !== null) {
      rows.push(['material', `${hit.material}${this.nameOf(hit.material) ? ` ${this.nameOf(hit.material)}` : ''}`]);
    }
    this.picked.replaceChildren(...rows.flatMap(([k, v]) => [el('dt', {}, k), el('dd', {}, v)]));
    if (hit.material !== null) {
      const chip = el('span', { class: 'chip' });
      chip.style.backgroundColor = this.colourOf(hit.material);
      this.picked.lastChild.prepend(chip);
    }
  }

  // Who made a voxel what it is: the newest kept version that changed it.
  async showMaker(hit) {
    const reply = await call('scene_changed', {
      name: this.name, at: this.view.atOf, points: { dtype: 'INT32', shape: [1, 3], values: hit.voxel },
    });
    const v = (reply.madeBy || [])[0];
    const rows = v
      ? [['set by', makerOf(v)], ['in version', `${v.version}, ${kindOf(v)}`], ['when', ago(v.stampNs)]]
      : [['set', `before version ${reply.oldest}`]];
    this.picked.append(...rows.flatMap(([k, text]) => [el('dt', {}, k), el('dd', {}, text)]));
  }

  measure(hit) {
    if (!hit) return;
    this.picks = this.picks.length === 1 ? [this.picks[0], hit.point] : [hit.point];
    if (this.picks.length < 2) {
      this.view.marks = [{ points: this.picks }];
      return;
    }
    const d = sub(this.picks[1], this.picks[0]);
    this.view.marks = [{ points: this.picks, text: metres(length(d)) }];
    this.state(`${metres(length(d))}: x ${metres(d[0])}, y ${metres(d[1])}, z ${metres(d[2])}`);
  }

  key(event) {
    if (event.target.closest('input[type="text"], input[type="password"], input[type="search"], select, textarea, dialog')) return;
    if (event.ctrlKey || event.metaKey) {
      const key = event.key.toLowerCase();
      if (!this.app.canWrite || (key !== 'z' && key !== 'y')) return;
      event.preventDefault();
      this.tools.takeBack(key === 'y' || event.shiftKey ? 'scene_redo' : 'scene_undo');
      return;
    }
    const tool = { l: 'orbit', m: 'measure', b: 'paint', x: 'erase', k: 'box', c: 'copy' }[event.key];
    if (tool) this.setTool(tool);
    const mode = MODES[Number(event.key) - 1];
    if (mode) this.setMode(mode[0]);
    if (event.key === 'r') this.home();
    if (event.key === ',' || event.key === '.') {
      this.timeline.slider.value = String(Number(this.timeline.slider.value) + (event.key === '.' ? 1 : -1));
      this.timeline.slide();
    }
    if (event.key === '[') this.setRadius(-8);
    if (event.key === ']') this.setRadius(8);
    if (event.key === '?') this.help.showModal();
    if (event.key === 'Escape') this.setTool('orbit');
  }
}

export function scenePage(app, name, address) {
  const page = new ScenePage(app, name, address);
  return { element: page.element, leave: () => page.leave() };
}
