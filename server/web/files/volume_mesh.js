// SPDX-License-Identifier: Apache-2.0
// The surface of a volume as a layer, kept up with by a watch: blocks that have changed come as
// events and replace what was there.
import { numbers } from './names.js';
import { Stream } from './session.js';

const MAX_BYTES = 1 << 20; // of an event
const EVERY_MS = 250; // it is shown at most so often

export class VolumeMesh {
  // show(layer) gets the whole surface whenever it has changed; live(state, error) as of a Stream.
  constructor(name, show, live) {
    this.show = show;
    this.blocks = new Map(); // "x,y,z" -> {positions, normals, colours}
    this.old = new Map(); // shown where a surface that begins anew has not come to its end
    this.origin = [0, 0, 0];
    this.stream = new Stream(`/v1/volumes/${name}/watch?max_bytes=${MAX_BYTES}`,
      (event, answer) => this.take(event, answer), live);
  }

  close() {
    this.stream.close();
    clearTimeout(this.timer);
  }

  take(event, answer) {
    const isAnew = event !== 'blocks';
    if (isAnew) {
      this.old = event === 'resync' ? new Map([...this.old, ...this.blocks]) : new Map();
      this.blocks.clear();
    }
    if (answer.origin) this.origin = [answer.origin.x || 0, answer.origin.y || 0, answer.origin.z || 0];
    this.replace(answer);
    if (!Number(answer.next?.toVersion || 0)) this.old.clear();
    this.isDropped = event === 'dropped';
    this.timer ||= setTimeout(() => {
      this.timer = 0;
      this.show(this.layer());
    }, EVERY_MS);
  }

  replace(reply) {
    const vertices = numbers(reply.vertices);
    const normals = numbers(reply.normals);
    const colours = numbers(reply.colours);
    const triangles = numbers(reply.triangles);
    const blocks = numbers(reply.blocks);
    let begin = 0;
    for (let b = 0; b + 3 < blocks.length; b += 4) {
      const end = blocks[b + 3];
      const n = 3 * (end - begin);
      const made = { positions: new Float32Array(3 * n), normals: new Float32Array(3 * n), colours: new Uint8Array(4 * n) };
      for (let i = 0; i < n; i++) {
        const v = triangles[3 * begin + i];
        made.positions.set(vertices.slice(3 * v, 3 * v + 3), 3 * i);
        made.normals.set(normals.slice(3 * v, 3 * v + 3), 3 * i);
        if (colours.length) made.colours.set([colours[3 * v], colours[3 * v + 1], colours[3 * v + 2], 255], 4 * i);
        else made.colours.set([196, 188, 172, 255], 4 * i);
      }
      const key = blocks.slice(b, b + 3).join(',');
      this.old.delete(key);
      if (n > 0) this.blocks.set(key, made);
      else this.blocks.delete(key);
      begin = end;
    }
  }

  get nTriangles() {
    let n = 0;
    for (const block of this.all()) n += block.positions.length / 9;
    return n;
  }

  * all() {
    yield* this.blocks.values();
    yield* this.old.values();
  }

  // All blocks as one layer; null where there is no surface.
  layer() {
    const n = 3 * this.nTriangles;
    if (n === 0) return null;
    const whole = { positions: new Float32Array(3 * n), normals: new Float32Array(3 * n), colours: new Uint8Array(4 * n) };
    let at = 0;
    for (const block of this.all()) {
      whole.positions.set(block.positions, 3 * at);
      whole.normals.set(block.normals, 3 * at);
      whole.colours.set(block.colours, 4 * at);
      at += block.positions.length / 3;
    }
    return { kind: 'mesh', origin: this.origin, ...whole, hidden: 0.1 };
  }

  // [low, high] of the surface, in metres.
  bounds() {
    const low = [Infinity, Infinity, Infinity];
    const high = [-Infinity, -Infinity, -Infinity];
    for (const { positions } of this.all()) {
      for (let i = 0; i < positions.length; i++) {
        low[i % 3] = Math.min(low[i % 3], positions[i]);
        high[i % 3] = Math.max(high[i % 3], positions[i]);
      }
    }
    return low[0] <= high[0] ? [low, high].map((v) => v.map((x, i) => x + this.origin[i])) : null;
  }
}
