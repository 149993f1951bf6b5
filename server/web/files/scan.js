// SPDX-License-Identifier: Apache-2.0
// A scan file that is dropped on a scene: voxelized by the server, run through one of its networks,
// shown as coloured points over the picture, and put into the scene where that is wanted.
import { cellLayer } from './scene_layers.js';
import { count, el, fallbackColour, hex, numbers, ramp } from './names.js';
import { getJson, sendFile } from './session.js';

const FORMATS = [['.pcd.bin', 'nuscenes'], ['.pcd', 'pcd'], ['.ply', 'ply'], ['.npy', 'npy'], ['.npz', 'npz'], ['.las', 'las'], ['.bin', 'kitti']];

export const formatOf = (name) => FORMATS.find(([end]) => name.toLowerCase().endsWith(end))?.[1] || '';

// A colour of CSS as bytes.
function bytesOf(text) {
  const c = new OffscreenCanvas(1, 1).getContext('2d');
  c.fillStyle = text;
  c.fillRect(0, 0, 1, 1);
  return [...c.getImageData(0, 0, 1, 1).data.slice(0, 3)];
}

export class Scan {
  constructor(page) {
    this.page = page;
    this.input = el('input', { type: 'file', id: 'scan-file', hidden: true, accept: FORMATS.map(([end]) => end).join(','), onchange: () => this.take(this.input.files[0]) });
    this.text = el('p', { class: 'dim' }, 'Drop a file here: pcd, ply, npy, npz, las, KITTI or nuScenes.');
    this.networks = el('select', { 'aria-label': 'Network', hidden: true });
    this.runButton = el('button', { type: 'button', hidden: true, onclick: () => this.infer() }, 'Label');
    this.putButton = el('button', { type: 'button', hidden: true, onclick: () => this.integrate() }, 'Put into the scene');
    this.clearButton = el('button', { type: 'button', hidden: true, onclick: () => this.clear() }, 'Hide');
    this.element = el('section', { 'aria-label': 'Scan' }, el('h2', {}, 'Scan'), this.text, this.input,
      el('div', { class: 'row' }, el('button', { type: 'button', onclick: () => this.input.click() }, 'Choose a file'), this.putButton, this.clearButton),
      el('div', { class: 'row later' }, this.networks, this.runButton));
  }

  // The whole page takes what is dropped on it.
  listen(element) {
    const over = (event) => {
      event.preventDefault();
      element.classList.toggle('dropping', event.type === 'dragover');
    };
    element.addEventListener('dragover', over);
    element.addEventListener('dragleave', over);
    element.addEventListener('drop', (event) => {
      over(event);
      this.take(event.dataTransfer.files[0]);
    });
  }

  async take(file) {
    if (!file) return;
    const format = formatOf(file.name);
    if (!format) {
      this.page.app.note(`"${file.name}" has none of the endings ${FORMATS.map(([end]) => end).join(' ')}`, true);
      return;
    }
    this.file = file;
    this.format = format;
    await this.work(`${file.name} is voxelized ...`, () => this.voxelize());
    this.putButton.hidden = !this.page.app.canWrite || !this.voxels;
    this.clearButton.hidden = !this.voxels;
    this.loadNetworks();
  }

  async work(text, job) {
    this.text.textContent = text;
    try {
      await job();
    } catch (error) {
      this.text.textContent = error.message;
      this.page.app.fail(error, 'The scan');
    }
  }

  async loadNetworks() {
    const { networks = [] } = await getJson('/v1/networks').catch(() => ({}));
    this.networks.replaceChildren(...networks.map((n) => el('option', { value: n.name }, n.name)));
    this.networks.hidden = this.runButton.hidden = networks.length === 0 || !this.voxels;
  }

  // Points and their colours become a layer.
  show(centres, colours, size) {
    this.page.view.setLayer('scan', cellLayer(this.origin, centres, colours, size));
    this.page.view.dataset.scan = String(centres.length / 3);
  }

  async voxelize() {
    const size = this.page.info.spec.voxelSizeM;
    const reply = await sendFile('voxelize', { format: this.format, size, outputs: 'coords,first_index' }, this.file);
    const coords = numbers(reply.coords);
    const n = coords.length / 4;
    const centres = new Float32Array(3 * n);
    const [o, l] = [reply.origin || {}, reply.low || {}];
    this.origin = [(o.x || 0) + (l.x || 0), (o.y || 0) + (l.y || 0), (o.z || 0) + (l.z || 0)];
    const heights = new Float32Array(n);
    for (let i = 0; i < n; i++) {
      for (let k = 0; k < 3; k++) centres[3 * i + k] = (coords[4 * i + 1 + k] + 0.5) * size;
      heights[i] = centres[3 * i + 2];
    }
    heights.sort();
    const [low, high] = [heights[Math.floor(n * 0.02)], heights[Math.floor(n * 0.97)]]; // strays aside
    const colours = new Uint8Array(4 * n);
    for (let i = 0; i < n; i++) colours.set([...ramp((centres[3 * i + 2] - low) / (high - low || 1)), 255], 4 * i);
    this.voxels = { centres, firstIndex: numbers(reply.firstIndex), size };
    this.show(centres, colours, size);
    this.text.textContent = `${this.file.name}: ${count(n)} voxels of ${count(reply.items?.[0]?.nPoints)} points, coloured by height`;
  }

  colourOf(label) {
    const entry = (this.page.info.spec.palette || [])[label];
    return bytesOf(entry ? hex(entry.rgb || 0) : fallbackColour(label));
  }

  // A label a row: of those that the output has, or the channel with the highest value.
  labelsOf(output) {
    if (output.labels) return numbers(output.labels);
    const values = numbers(output.values);
    const channels = Number(output.values?.shape?.[1] || 1);
    return Int32Array.from({ length: values.length / channels }, (_, i) => {
      const row = values.subarray(i * channels, (i + 1) * channels);
      return row.indexOf(Math.max(...row));
    });
  }

  infer() {
    const network = this.networks.value;
    return this.work(`${network} looks at ${this.file.name} ...`, async () => {
      const reply = await sendFile('infer', { format: this.format, network, outputs: '*' }, this.file);
      const outputs = reply.outputs || [];
      const output = outputs.find((o) => o.kind === 'NETWORK_POINTS') || outputs.find((o) => o.coords);
      if (!output) {
        this.text.textContent = `${network} gives ${outputs.map((o) => o.name).join(', ')}: nothing of single points or voxels.`;
        return;
      }
      const labels = this.labelsOf(output);
      this.paint(output, labels, reply);
      const seen = new Set(labels);
      this.text.textContent = `${this.file.name}: ${count(labels.length)} rows of ${output.name} by ${network}, ${seen.size} labels, ${(reply.engineMs || 0).toFixed(0)} ms`;
    });
  }

  paint(output, labels, reply) {
    const known = new Map();
    const rgb = (label) => {
      if (!known.has(label)) known.set(label, [...this.colourOf(label), 255]);
      return known.get(label);
    };
    if (!output.coords) { // of points: a voxel shows that of its first one
      const { centres, firstIndex, size } = this.voxels;
      const colours = new Uint8Array(4 * firstIndex.length);
      for (let i = 0; i < firstIndex.length; i++) colours.set(rgb(labels[firstIndex[i]] ?? 0), 4 * i);
      this.show(centres, colours, size);
      return;
    }
    const coords = numbers(output.coords);
    const stride = (output.stride || []).length ? output.stride.map(Number) : [1, 1, 1];
    const s = reply.size || {};
    const size = [s.x || 1, s.y || 1, s.z || 1];
    const [o, l] = [reply.origin || {}, reply.low || {}];
    const n = coords.length / 4;
    const centres = new Float32Array(3 * n);
    const colours = new Uint8Array(4 * n);
    for (let i = 0; i < n; i++) {
      for (let k = 0; k < 3; k++) centres[3 * i + k] = (coords[4 * i + 1 + k] + 0.5) * stride[k] * size[k];
      colours.set(rgb(labels[i]), 4 * i);
    }
    this.origin = [(o.x || 0) + (l.x || 0), (o.y || 0) + (l.y || 0), (o.z || 0) + (l.z || 0)];
    this.show(centres, colours, size[0] * stride[0]);
  }

  integrate() {
    return this.work(`${this.file.name} goes into the scene ...`, async () => {
      const reply = await sendFile('scene_integrate', { format: this.format, name: this.page.name }, this.file, { changes: true });
      this.text.textContent = `${this.file.name} is in version ${reply.change?.version}: ${count(reply.change?.nAdded)} voxels are new.`;
      this.clear();
    });
  }

  clear() {
    this.page.view.setLayer('scan', null);
    delete this.page.view.dataset.scan;
    this.clearButton.hidden = true;
  }
}
