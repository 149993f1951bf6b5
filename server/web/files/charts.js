// SPDX-License-Identifier: Apache-2.0
// Lines over time on a canvas. A chart is data: a title, a unit, and series by name.
import { el } from './names.js';

const POINTS = 180;

// The top of a scale; of bytes a power of two.
function nice(x, isBinary) {
  if (isBinary) return 2 ** Math.ceil(Math.log2(x));
  const power = 10 ** Math.floor(Math.log10(x));
  return [1, 2, 4, 10].map((m) => m * power).find((m) => m >= x);
}

export class Chart {
  constructor({ title, format, series, least = 1, isBinary = false }) {
    this.isBinary = isBinary;
    this.format = format;
    this.series = series;
    this.least = least;
    this.values = series.map(() => []);
    this.now = el('span', { class: 'now' }, '–');
    this.canvas = el('canvas', { role: 'img', 'aria-label': title });
    this.title = title;
    this.element = el('section', { class: 'panel chart' },
      el('header', {}, el('h2', {}, title), this.now), this.canvas,
      series.length > 1
        ? el('div', { class: 'legend' }, ...series.map((s, i) => el('span', { class: `s${i + 1}` }, s)))
        : null);
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(this.canvas);
    this.redraw = () => this.draw();
    addEventListener('theme', this.redraw);
  }

  close() {
    this.observer.disconnect();
    removeEventListener('theme', this.redraw);
  }

  add(...values) {
    values.forEach((v, i) => {
      this.values[i].push(v);
      if (this.values[i].length > POINTS) this.values[i].shift();
    });
    this.now.textContent = this.format(values[0]);
    this.canvas.setAttribute('aria-label',
      `${this.title}: ${this.series.map((s, i) => `${s} ${this.format(values[i])}`).join(', ')}`);
    this.draw();
  }

  draw() {
    const ratio = devicePixelRatio || 1;
    const width = this.canvas.clientWidth;
    const height = this.canvas.clientHeight;
    if (!width) return;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    const c = this.canvas.getContext('2d');
    const style = getComputedStyle(this.canvas);
    const colour = (name) => style.getPropertyValue(name).trim();
    const top = nice(Math.max(this.least, ...this.values.flat()), this.isBinary);
    c.scale(ratio, ratio);
    c.font = '11px system-ui, sans-serif';
    c.textBaseline = 'bottom';
    for (let i = 0; i <= 2; i++) {
      const y = Math.round(height - 1 - (i / 2) * (height - 18)) + 0.5;
      c.strokeStyle = colour('--line');
      c.beginPath();
      c.moveTo(0, y);
      c.lineTo(width, y);
      c.stroke();
      c.fillStyle = colour('--dim');
      if (i > 0) c.fillText(this.format((top * i) / 2), 0, y - 2);
    }
    this.values.forEach((values, i) => this.line(c, values, width, height, top, colour(`--series-${i + 1}`), i === 0));
  }

  line(c, values, width, height, top, colour, isFilled) {
    if (values.length < 2) return;
    const x = (i) => width - ((values.length - 1 - i) / (POINTS - 1)) * width;
    const y = (v) => height - 1.5 - (v / top) * (height - 19);
    c.beginPath();
    values.forEach((v, i) => (i ? c.lineTo(x(i), y(v)) : c.moveTo(x(i), y(v))));
    c.strokeStyle = colour;
    c.lineWidth = 1.8;
    c.lineJoin = 'round';
    c.stroke();
    if (!isFilled) return;
    c.lineTo(width, height);
    c.lineTo(x(0), height);
    c.globalAlpha = 0.12;
    c.fillStyle = colour;
    c.fill();
    c.globalAlpha = 1;
  }
}
