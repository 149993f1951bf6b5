// SPDX-License-Identifier: Apache-2.0
// The kept versions of a scene: a bar each, as high as what it changed and coloured by how, and a
// slider that chooses the one that is shown.
import { ago, count, el } from './names.js';

const MOST_VERSIONS = 200;
const HEIGHT = 30;
export const CHANGES = [ // field of a version, variable of the style, word, bit of a cell that differs
  ['nAdded', '--added', 'added', 1], ['nRemoved', '--removed', 'removed', 2],
  ['nChanged', '--recoloured', 'of another material', 4], ['nFreed', '--freed', 'free now', 8],
];
const KINDS = {
  SCENE_EDITED: 'edited', SCENE_INTEGRATED: 'a scan', SCENE_UNDONE: 'undone', SCENE_REDONE: 'redone',
  SCENE_DECAYED: 'a decay',
};

export const kindOf = (version) => KINDS[version?.kind] || 'made';
export const makerOf = (v) => [v.by, v.clientId].filter(Boolean).join(', ') || 'somebody without a name';

export class Timeline {
  // choose(at): a version's number as text, or '' for the newest.
  constructor(choose) {
    this.choose = choose;
    this.versions = [];
    this.at = '';
    this.bars = el('canvas', { class: 'bars', role: 'img', 'aria-label': 'What each version changed', onclick: (event) => this.click(event) });
    this.slider = el('input', { type: 'range', min: '0', max: '0', value: '0', 'aria-label': 'Version', oninput: () => this.slide() });
    this.text = el('output', {});
    this.nowButton = el('button', { type: 'button', onclick: () => this.choose('') }, 'Newest');
    this.badge = el('span', { class: 'badge' }, 'live');
    this.element = el('div', { class: 'timeline' }, this.badge,
      el('div', { class: 'track' }, this.bars, this.slider), this.text, this.nowButton);
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(this.bars);
    this.redraw = () => this.draw();
    addEventListener('theme', this.redraw);
  }

  close() {
    this.observer.disconnect();
    removeEventListener('theme', this.redraw);
  }

  async load(call, name) {
    const log = await call('scene_log', { name, limit: MOST_VERSIONS });
    this.versions = (log.versions || []).reverse();
    this.slider.max = String(Math.max(this.versions.length - 1, 0));
    this.show(this.at);
  }

  // Which of the kept versions is shown; -1 where it is none of them.
  get index() {
    return this.at ? this.versions.findIndex((v) => v.version === this.at) : this.versions.length - 1;
  }

  show(at) {
    this.at = at;
    const i = this.index;
    const v = this.versions[i];
    if (i >= 0) this.slider.value = String(i);
    this.badge.textContent = at ? 'then' : 'live';
    this.badge.classList.toggle('old', Boolean(at));
    this.nowButton.disabled = !at;
    this.text.textContent = v ? `version ${v.version}, ${kindOf(v)} ${ago(v.stampNs)}` : at ? `at ${at}` : '';
    if (v) {
      const parts = CHANGES.filter(([field]) => Number(v[field] || 0) > 0).map(([field, , word]) => `${count(v[field])} ${word}`);
      this.text.title = `${makerOf(v)}: ${parts.join(', ') || 'nothing'}`;
    }
    this.draw();
  }

  slide() {
    const i = Number(this.slider.value);
    this.choose(i === this.versions.length - 1 ? '' : this.versions[i]?.version || '');
  }

  click(event) {
    const box = this.bars.getBoundingClientRect();
    const i = Math.floor((event.clientX - box.left) / box.width * this.versions.length);
    this.slider.value = String(Math.min(Math.max(i, 0), this.versions.length - 1));
    this.slide();
  }

  draw() {
    const ratio = devicePixelRatio || 1;
    const width = this.bars.clientWidth;
    if (!width) return;
    this.bars.width = Math.round(width * ratio);
    this.bars.height = Math.round(HEIGHT * ratio);
    const c = this.bars.getContext('2d');
    const style = getComputedStyle(this.bars);
    const n = Math.max(this.versions.length, 1);
    const step = width / n;
    c.scale(ratio, ratio);
    const size = (v) => Math.log10(1 + CHANGES.reduce((sum, [field]) => sum + Number(v[field] || 0), 0));
    const top = Math.max(1, ...this.versions.map(size));
    this.versions.forEach((v, i) => {
      const sum = CHANGES.reduce((s, [field]) => s + Number(v[field] || 0), 0);
      const gap = step > 6 ? 1.5 : 0;
      if (i === this.index) {
        c.fillStyle = style.getPropertyValue('--accent-soft');
        c.fillRect(i * step, 0, step, HEIGHT);
      }
      let y = HEIGHT;
      for (const [field, variable] of CHANGES) {
        const h = sum > 0 ? (size(v) / top) * (HEIGHT - 4) * (Number(v[field] || 0) / sum) : 0;
        c.fillStyle = style.getPropertyValue(variable);
        c.fillRect(i * step + gap, y - h, Math.max(step - 2 * gap, 1), h);
        y -= h;
      }
      c.fillStyle = style.getPropertyValue('--line');
      c.fillRect(i * step, HEIGHT - 1, step, 1);
    });
  }
}
