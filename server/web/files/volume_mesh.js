// SPDX-License-Identifier: Apache-2.0
// The surface of a volume as a layer, kept up with: blocks that have changed are fetched again and
// replace what was there.
import { numbers } from './names.js';
import { call, getJson } from './session.js';

const PART_BLOCKS = 512;
const EVERY_MS = 700;

export class VolumeMesh {
  // show(layer) gets the whole surface whenever it has changed.
  constructor(name, show, fail) {
    this.name = name;
    this.show = show;
    this.fail = fail;
    this.blocks = new Map(); // "x,y,z" -> {positions, normals, colours}
    this.stamp = '0'; // text, as it needs more bits than numbers here have
    this.generation = '';
    this.isClosed = false;
    this.run();
  }

  close() {
    this.isClosed = true;
    clearTimeout(this.timer);
  }

  async run() {
    try {
      const { volume } = await getJson(`/v1/volumes/${this.name}`);
      if (volume.generation !== this.generation) {
        this.generation = volume.generation;
        this.blocks.clear();
        this.stamp = '0';
        this.origin = [volume.origin?.x || 0, volume.origin?.y || 0, volume.origin?.z || 0];
      }
      if (!document.hidden && (volume.stamp || '0') !== this.stamp) await this.fetchBlocks();
    } catch (error) {
      if (!this.isClosed) this.fail(error);
      if (error.status) return;
    }
    if (!this.isClosed) this.timer = setTimeout(() => this.run(), EVERY_MS);
  }

  async fetchBlocks() {
    const since = this.stamp;
    let first = 0;
    let stamp = '';
    do {
      const reply = await call('volume_extract', { name: this.name, since, first, limit: PART_BLOCKS });
      if (this.isClosed) return;
      if (first === 0 && (reply.isWhole || since === '0')) this.blocks.clear();
      stamp ||= reply.stamp || '0';
      this.take(reply);
      first = Number(reply.next || 0);
    } while (first > 0);
    this.stamp = stamp;
    this.show(this.layer());
  }

  take(reply) {
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
        made.positions.set(vertices.subarray(3 * v, 3 * v + 3), 3 * i);
        made.normals.set(normals.subarray(3 * v, 3 * v + 3), 3 * i);
        if (colours.length) made.colours.set([colours[3 * v], colours[3 * v + 1], colours[3 * v + 2], 255], 4 * i);
        else made.colours.set([196, 188, 172, 255], 4 * i);
      }
      const key = blocks.slice(b, b + 3).join(',');
      if (n > 0) this.blocks.set(key, made);
      else this.blocks.delete(key);
      begin = end;
    }
  }

  get nTriangles() {
    let n = 0;
    for (const block of this.blocks.values()) n += block.positions.length / 9;
    return n;
  }

  // All blocks as one layer; null where there is no surface.
  layer() {
    const n = 3 * this.nTriangles;
    if (n === 0) return null;
    const whole = { positions: new Float32Array(3 * n), normals: new Float32Array(3 * n), colours: new Uint8Array(4 * n) };
    let at = 0;
    for (const block of this.blocks.values()) {
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
    for (const { positions } of this.blocks.values()) {
      for (let i = 0; i < positions.length; i++) {
        low[i % 3] = Math.min(low[i % 3], positions[i]);
        high[i % 3] = Math.max(high[i % 3], positions[i]);
      }
    }
    return low[0] <= high[0] ? [low, high].map((v) => v.map((x, i) => x + this.origin[i])) : null;
  }
}
