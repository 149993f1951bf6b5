// SPDX-License-Identifier: Apache-2.0
// Changing a scene by mouse: painting, erasing, boxes and copies. What is drawn is sent as edits of
// its own client, so undo takes back what this page did.
import { boxEdges, sameColour } from './layers.js';
import { add, scale, sub } from './math.js';
import { call } from './session.js';

const MOST_BALLS = 64; // in one edit of a stroke
const vec = ([x, y, z]) => ({ x, y, z });

export class Tools {
  constructor(page) {
    this.page = page;
    this.stroke = [];
    this.isSending = false;
    this.first = null; // a box's first corner
    this.source = null; // of copies: [low, high]
  }

  get view() {
    return this.page.view;
  }

  reset() {
    this.first = null;
    this.source = null;
    this.view.setLayer('selection', null);
  }

  say(tool) {
    const texts = {
      box: 'Drag from one corner of the box to the other.',
      copy: this.source ? 'Click where the copy is to stand.' : 'Drag over what is to be copied.',
    };
    this.page.state(texts[tool] || '');
  }

  async act(tool, phase, place) {
    if (tool === 'paint' || tool === 'erase') {
      if (phase !== 'end') await this.dab(tool, place);
      return;
    }
    if (tool === 'copy' && this.source) {
      if (phase === 'start') await this.paste(place);
      return;
    }
    await this.drag(tool, phase, place);
  }

  // A hit for each call, one at a time: what comes meanwhile is left out, but for the last of a drag.
  async cast(place, mustWait) {
    while (this.casting && mustWait) await this.casting;
    if (this.casting) return null;
    this.casting = this.view.cast(place);
    try {
      return await this.casting;
    } catch (error) {
      this.page.app.fail(error, 'Nothing could be found there');
      return null;
    } finally {
      this.casting = null;
    }
  }

  // --- balls ----------------------------------------------------------------------------------

  // One ball where the pointer is. Balls of one stroke that come while an edit is under way go into
  // the next one.
  async dab(tool, place) {
    const hit = this.page.at ? null : await this.cast(place, false);
    if (!hit) return;
    this.stroke.push(this.paintOf({ ball: { centre: vec(hit.point), radius: this.page.radius } }, tool === 'erase'));
    this.stroke = this.stroke.slice(-MOST_BALLS);
    this.send();
  }

  paintOf(shape, isErasing) {
    if (isErasing) return { ...shape, action: 'SCENE_ERASE' };
    return this.page.info.spec.materialBits ? { ...shape, material: this.page.material } : shape;
  }

  async send() {
    if (this.isSending || this.stroke.length === 0) return;
    this.isSending = true;
    const operations = this.stroke;
    this.stroke = [];
    try {
      await call('scene_edit', { name: this.page.name, operations }, { changes: true });
    } catch (error) {
      this.page.app.fail(error, 'The change was not made');
      this.stroke = [];
    }
    this.isSending = false;
    this.send();
  }

  // --- boxes ----------------------------------------------------------------------------------

  // Between two places, of whole voxels. A box is as thick as the brush where they lie in a plane; what
  // is copied reaches as far around them.
  boxOf(a, b, isSelection) {
    const voxel = this.page.info.spec.voxelSizeM;
    const o = this.page.info.spec.origin || {};
    const origin = [o.x || 0, o.y || 0, o.z || 0];
    const low = a.point.map((x, i) => Math.min(x, b.point[i]));
    const high = a.point.map((x, i) => Math.max(x, b.point[i]));
    for (let i = 0; i < 3; i++) {
      const isThin = high[i] - low[i] < this.page.radius;
      if (isSelection) {
        low[i] -= this.page.radius;
        high[i] += this.page.radius;
      } else if (isThin && a.normal[i] !== 0) {
        if (a.normal[i] > 0) high[i] = low[i] + 2 * this.page.radius;
        else low[i] = high[i] - 2 * this.page.radius;
      }
    }
    const cell = (x, i, round) => origin[i] + round((x - origin[i]) / voxel) * voxel;
    return [low.map((x, i) => cell(x + 1e-3 * voxel, i, Math.floor)), high.map((x, i) => cell(x - 1e-3 * voxel, i, Math.ceil))];
  }

  showBox([low, high]) {
    const positions = boxEdges(sub(low, low), sub(high, low));
    this.view.setLayer('selection', {
      kind: 'lines', origin: low, positions: new Float32Array(positions), colours: sameColour(24, [255, 213, 74, 255]), hidden: 0.5,
    });
  }

  async drag(tool, phase, place) {
    if (phase === 'start') this.first = null;
    const hit = await this.cast(place, phase !== 'move');
    if (!hit) return;
    if (phase === 'start') this.first = hit;
    if (!this.first) return;
    const box = this.boxOf(this.first, hit, tool === 'copy');
    this.showBox(box);
    if (phase !== 'end') return;
    this.first = null;
    if (tool === 'copy') {
      this.source = box;
      this.say('copy');
    } else {
      this.stroke.push(this.paintOf({ box: { low: vec(box[0]), high: vec(box[1]) } }, false));
      this.view.setLayer('selection', null);
      this.send();
    }
  }

  // The copy's lowest layer stands on what was clicked, its middle there.
  async paste(place) {
    const hit = await this.cast(place, true);
    if (!hit) return;
    const [low, high] = this.source;
    const voxel = this.page.info.spec.voxelSizeM;
    const size = sub(high, low);
    const to = [hit.point[0] - size[0] / 2, hit.point[1] - size[1] / 2, hit.point[2]];
    const moved = to.map((x, i) => Math.round((x - low[i]) / voxel) * voxel);
    const at = add(low, moved);
    const middle = scale([voxel, voxel, voxel], 0.5); // of a voxel, so that roundings do not matter
    this.stroke.push({
      box: { low: vec(at), high: vec(add(at, size)) }, action: 'SCENE_COPY', copy: { from: vec(add(low, middle)) },
    });
    this.send();
  }

  async takeBack(method) {
    const what = method === 'scene_undo' ? 'undo' : 'redo';
    try {
      const reply = await call(method, { name: this.page.name }, { changes: true });
      this.page.app.note(`Version ${reply.ofVersion} is ${what === 'undo' ? 'undone' : 'there again'}.`);
    } catch (error) {
      if (error.status === 404) this.page.app.note(`There is nothing of yours to ${what}.`);
      else this.page.app.fail(error, `Could not ${what}`);
    }
  }
}
