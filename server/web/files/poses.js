// SPDX-License-Identifier: Apache-2.0
// Poses over a 3D view: pose graphs with their edges, and where the sensors of odometries have been
// since they are looked at. Rows of check boxes, each a layer that is kept up with while it is on.
import { el, numbers } from './names.js';
import { call, getJson } from './session.js';

const GRAPH_MS = 1000;
const ODOMETRY_MS = 400;
const MOST_TRAIL = 20000; // poses of a trail; the oldest go
const MOST_AXES = 4000; // poses of which axes are drawn
const STEP = [96, 165, 250, 255];
const LOOP = [251, 146, 60, 255];
const AXES = [[255, 107, 94, 255], [123, 211, 106, 255], [106, 168, 255, 255]];

// Axis k of a frame that is turned by a quaternion.
function axisOf([x, y, z, w], k) {
  return [
    [1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)],
    [2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x)],
    [2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)],
  ][k];
}

// Lines of a layer, whose places are far from zero in metres, and so kept from the first one.
class Lines {
  constructor(origin) {
    this.origin = origin;
    this.positions = [];
    this.colours = [];
  }

  add(from, to, colour) {
    for (const place of [from, to]) {
      this.positions.push(...place.map((x, i) => x - this.origin[i]));
      this.colours.push(...colour);
    }
  }

  // Axes of a pose x y z qx qy qz qw.
  addAxes(pose, size) {
    const at = pose.slice(0, 3);
    AXES.forEach((colour, k) => {
      const axis = axisOf(pose.slice(3), k);
      this.add(at, at.map((x, i) => x + size * axis[i]), colour);
    });
  }

  layer() {
    return this.positions.length === 0 ? null : {
      kind: 'lines', origin: this.origin, positions: new Float32Array(this.positions), colours: new Uint8Array(this.colours), hidden: 0.4,
    };
  }
}

// How long axes are: some of the usual way from pose to pose.
function axisSize(poses) {
  const steps = [];
  for (let i = 1; i < poses.length; i += Math.ceil(poses.length / 500)) {
    steps.push(Math.hypot(...[0, 1, 2].map((k) => poses[i][k] - poses[i - 1][k])));
  }
  steps.sort((a, b) => a - b);
  return Math.min(Math.max(0.6 * (steps[steps.length >> 1] || 0.5), 0.1), 2);
}

// What a posegraph_read with edges says, as a layer; null: nothing is in it.
export function graphLayer(reply) {
  const rows = numbers(reply.poses);
  const poses = [];
  for (let i = 0; i + 6 < rows.length; i += 7) poses.push([...rows.slice(i, i + 7)]);
  if (poses.length === 0) return null;
  const lines = new Lines(poses[0].slice(0, 3));
  const at = new Map([...numbers(reply.ids)].map((id, i) => [String(id), i]));
  const ends = [...numbers(reply.edgeIds)].map((id) => at.get(String(id)));
  for (let i = 0; i + 1 < ends.length; i += 2) {
    const [from, to] = [poses[ends[i]], poses[ends[i + 1]]];
    if (from && to) lines.add(from.slice(0, 3), to.slice(0, 3), Math.abs(ends[i] - ends[i + 1]) === 1 ? STEP : LOOP);
  }
  const size = axisSize(poses);
  const every = Math.ceil(poses.length / MOST_AXES);
  for (let i = 0; i < poses.length; i += every) lines.addAxes(poses[i], size);
  return lines.layer();
}

function poseOf(message) {
  const { translation: t = {}, rotation: q = {} } = message || {};
  return [t.x || 0, t.y || 0, t.z || 0, q.x || 0, q.y || 0, q.z || 0, message?.rotation ? q.w || 0 : 1];
}

class Follower {
  constructor(name, everyMs, show, fail) {
    this.name = name;
    this.everyMs = everyMs;
    this.show = show;
    this.fail = fail;
    this.isClosed = false;
    this.run();
  }

  close() {
    this.isClosed = true;
    clearTimeout(this.timer);
  }

  async run() {
    try {
      if (!document.hidden) {
        const layer = await this.look();
        if (layer !== undefined && !this.isClosed) this.show(layer);
      }
    } catch (error) {
      if (!this.isClosed) this.fail(error);
      if ([401, 403, 404].includes(error.status)) return;
    }
    if (!this.isClosed) this.timer = setTimeout(() => this.run(), this.everyMs);
  }
}

class Graph extends Follower {
  constructor(name, show, fail) {
    super(name, GRAPH_MS, show, fail);
  }

  async look() {
    const { posegraph: g } = await getJson(`/v1/posegraphs/${this.name}`);
    const state = [g.generation, g.version, g.nNodes, g.nEdges].join();
    if (state === this.state) return undefined;
    const layer = graphLayer(await call('posegraph_read', { name: this.name, edges: true }));
    this.state = state;
    return layer;
  }
}

class Trail extends Follower {
  constructor(name, show, fail) {
    super(name, ODOMETRY_MS, show, fail);
  }

  async look() {
    const { odometry: o } = await getJson(`/v1/odometries/${this.name}`);
    const n = Number(o.nScans || 0);
    if (o.generation !== this.generation || n < this.n) this.poses = [];
    else if (n === this.n) return undefined;
    this.generation = o.generation;
    this.n = n;
    const pose = poseOf(o.TMapSensor);
    if (n > 0) this.poses.push(pose); // before its first scan it has not been anywhere
    if (this.poses.length > MOST_TRAIL) this.poses.shift();
    const lines = new Lines((this.poses[0] || pose).slice(0, 3));
    for (let i = 1; i < this.poses.length; i++) lines.add(this.poses[i - 1].slice(0, 3), this.poses[i].slice(0, 3), STEP);
    lines.addAxes(pose, 1);
    return lines.layer();
  }
}

// The rows, and the layers of a view that they switch.
export class Poses {
  constructor(view, fail) {
    this.view = view;
    this.fail = fail;
    this.on = new Map(); // the layer's name -> its follower
    this.element = el('div', {});
  }

  close() {
    for (const follower of this.on.values()) follower.close();
    this.on.clear();
  }

  row(Kind, kind, text, name) {
    const id = `${kind}-${name}`;
    const box = el('input', { type: 'checkbox', id: `layer-${id}`, checked: this.on.has(id), onchange: () => this.toggle(Kind, id, name, box.checked) });
    return el('div', { class: 'check' }, box, el('label', { for: `layer-${id}` }, `${text} ${name}`));
  }

  // The pose graphs and odometries that there are.
  async load() {
    const [{ posegraphs = [] }, { odometries = [] }] = await Promise.all([getJson('/v1/posegraphs'), getJson('/v1/odometries')]);
    this.element.replaceChildren(
      ...posegraphs.map((g) => this.row(Graph, 'posegraph', 'Pose graph', g.name)),
      ...odometries.map((o) => this.row(Trail, 'odometry', 'Odometry', o.name)));
  }

  toggle(Kind, id, name, isOn) {
    this.on.get(id)?.close();
    this.on.delete(id);
    this.view.setLayer(id, null);
    if (isOn) {
      this.on.set(id, new Kind(name, (layer) => this.view.setLayer(id, layer), (error) => this.fail(error, 'The poses cannot be shown')));
    }
  }
}
