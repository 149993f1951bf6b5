// SPDX-License-Identifier: Apache-2.0
// <voxel-view src="/v1/scenes/NAME" token="..." live>: a scene as the server draws it, and a camera to
// move. An element of its own, which other pages may use: they load this module, say where the server
// is in `src`, and give a token that may read; `live` follows changes. Their origin has to be in the
// server's http.allowed_origins. Over the picture lie layers (layers.js). Where src is that of a
// volume there is no picture, only layers.
//
// Frames: at most two requests are under way; the newest camera replaces the one that waits, and a
// picture that is older than the shown one is dropped. While something moves, pictures are as
// large as what was measured lets them be in MOVING_MS; when nothing has moved for STILL_MS they
// get sharper, and then as sharp as the screen.
import { findBounds } from './bounds.js';
import { Layers } from './layers.js';
import { Camera, add, clamp, isVector, length, scale, sub } from './math.js';
import { el, numbers } from './names.js';
import { paintAxes, paintBrush, paintMark } from './overlay.js';
import { Stream } from './session.js';

const MOVING_MS = 75;
const STILL_MS = 200;
const SHARP_MS = 450;
const MOST_IN_FLIGHT = 2;
const LEAST_PIXELS = 160 * 90;
const MOST_PIXELS = 1920 * 1200;
const KEYS = {
  KeyW: [1, 0, 0], KeyS: [-1, 0, 0], KeyD: [0, 1, 0], KeyA: [0, -1, 0], KeyE: [0, 0, 1], KeyQ: [0, 0, -1],
};
const MODES = ['colour', 'height', 'depth', 'normal', 'ao', 'age', 'label'];
const JPEG_MODES = ['colour', 'height', 'ao', 'age', 'label'];
const DEPTH_PIXELS = 400; // wide: what layers are hidden by

export class VoxelView extends HTMLElement {
  static observedAttributes = ['src', 'mode', 'live'];

  constructor() {
    super();
    this.camera = new Camera();
    this.shownCamera = this.camera; // that of the shown picture
    this.at = '';
    this.clip = null; // [low, high] in metres: only what is in it is shown
    this.mode = 'colour';
    this.tool = 'orbit';
    this.inFlight = new Map(); // number of a frame -> what ends it
    this.wanted = null;
    this.nextFrame = 1;
    this.shownFrame = 0;
    this.shownVersion = 0;
    this.mostPixels = MOST_PIXELS;
    this.costs = new Map(); // milliseconds a pixel, measured, of each mode
    this.fixedMs = 12;
    this.frames = []; // when the last ones came
    this.keys = new Set();
    this.marks = [];
    this.hasView = false;
    this.waits = false; // for a view that is on its way
    this.nDrawn = 0;
  }

  connectedCallback() {
    if (this.picture) return;
    this.picture = el('canvas', { 'aria-hidden': 'true' });
    this.over = el('canvas', { 'aria-hidden': 'true' });
    this.overlay = el('canvas', { 'aria-hidden': 'true' });
    this.layers = new Layers(this.over);
    this.append(this.picture, this.over, this.overlay);
    this.dress();
    this.tabIndex = 0;
    this.setAttribute('role', 'application');
    this.setAttribute('aria-label', '3D view: drag turns, right drag moves, wheel zooms, W A S D Q E fly, double click focuses');
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(this);
    this.listen();
    this.resize();
    this.follow();
    if (this.isScene && !this.waits && !this.hasView) this.fit().catch(() => null);
  }

  // Pages of others have no style for it.
  dress() {
    const place = getComputedStyle(this).position === 'static' ? { position: 'relative' } : {};
    Object.assign(this.style, { display: 'block', touchAction: 'none', userSelect: 'none', ...place });
    for (const canvas of [this.picture, this.over, this.overlay]) {
      Object.assign(canvas.style, { position: 'absolute', inset: '0', width: '100%', height: '100%', display: 'block' });
    }
  }

  // The `live` of other pages; the dashboard listens by itself.
  async follow() {
    this.stream?.close();
    this.stream = null;
    const src = this.getAttribute('src');
    if (!this.hasAttribute('live') || !this.isScene || this.waits) return;
    try {
      const response = await fetch(src, { headers: this.headers, cache: 'no-store' });
      const { scene } = await response.json();
      if (!scene || this.stream || src !== this.getAttribute('src') || !this.isConnected) return;
      this.depth = scene.spec.depth || 17;
      // One cell as large as the scene: that something has changed is enough.
      this.stream = new Stream(`${src}/watch?level=${this.depth}&max_bytes=13`, () => this.draw(), () => {}, this.headers);
    } catch (error) {
      this.dispatchEvent(new CustomEvent('fault', { detail: error }));
    }
  }

  disconnectedCallback() {
    this.observer?.disconnect();
    this.stream?.close();
    clearTimeout(this.timer);
    cancelAnimationFrame(this.flight);
    for (const abort of this.inFlight.values()) abort.abort();
  }

  attributeChangedCallback(name, _, value) {
    if (name === 'mode' && MODES.includes(value)) this.mode = value;
    if (!this.picture) return;
    if (name !== 'mode') this.follow();
    this.draw();
  }

  get name() {
    return decodeURIComponent((this.getAttribute('src') || '').split('/').pop());
  }

  get isScene() {
    return /\/v1\/scenes\//.test(this.getAttribute('src') || '');
  }

  get headers() {
    return this.getAttribute('token') ? { Authorization: `Bearer ${this.getAttribute('token')}` } : {};
  }

  // Calls a method that changes nothing, of the server of `src`.
  async call(method, body) {
    const base = (this.getAttribute('src') || '').replace(/\/v1\/.*$/, '');
    const response = await fetch(`${base}/v1/${method}`, {
      method: 'POST', headers: { 'Content-Type': 'application/json', ...this.headers }, body: JSON.stringify(body),
    });
    const reply = await response.json();
    if (!response.ok) throw Object.assign(new Error(reply.message), { status: response.status });
    return reply;
  }

  get atOf() {
    if (!this.at) return undefined;
    return /^\d+$/.test(this.at) ? { version: this.at } : { snapshot: this.at };
  }

  get aspect() {
    return this.clientWidth / Math.max(this.clientHeight, 1);
  }

  get msPerPixel() {
    return this.costs.get(this.mode) ?? (this.mode === 'ao' ? 0.004 : 0.0006);
  }

  // --- frames -------------------------------------------------------------------------------

  resize() {
    const ratio = devicePixelRatio || 1;
    this.overlay.width = Math.round(this.clientWidth * ratio);
    this.overlay.height = Math.round(this.clientHeight * ratio);
    this.draw();
  }

  // Something has changed: a frame now, and sharper ones when nothing follows.
  draw(isMoving = false) {
    clearTimeout(this.timer);
    this.nDrawn++;
    this.dataset.sharp = 'false';
    this.paintOverlay();
    if (!this.isScene) {
      this.shownCamera = this.camera;
      this.dataset.sharp = 'true';
      return;
    }
    this.want(isMoving ? MOVING_MS : SHARP_MS);
    this.timer = setTimeout(() => this.sharpen(isMoving), STILL_MS);
  }

  sharpen(wasMoving) {
    if (wasMoving) this.want(SHARP_MS);
    this.timer = setTimeout(() => this.want(Infinity), wasMoving ? SHARP_MS : 0);
  }

  // The size of a picture that takes so long.
  sizeFor(budgetMs) {
    const ratio = Math.min(devicePixelRatio || 1, 2);
    const full = this.clientWidth * this.clientHeight * ratio * ratio;
    const affordable = Math.max(LEAST_PIXELS, (budgetMs - this.fixedMs) / this.msPerPixel);
    const pixels = Math.min(full, affordable, this.mostPixels);
    const s = Math.sqrt(pixels / Math.max(full, 1)) * ratio;
    return [Math.max(16, Math.round(this.clientWidth * s)), Math.max(16, Math.round(this.clientHeight * s))];
  }

  want(budgetMs) {
    if (!this.clientWidth || !this.getAttribute('src') || this.waits) return;
    this.wanted = budgetMs;
    this.pump();
  }

  pump() {
    if (this.wanted === null || this.inFlight.size >= MOST_IN_FLIGHT) return;
    const budget = this.wanted;
    this.wanted = null;
    this.fetchFrame(budget);
  }

  url(width, height, isFinal) {
    const query = new URLSearchParams({ size: `${width}x${height}`, mode: this.mode });
    if (this.hasView) {
      query.set('eye', this.camera.eye.map((x) => +x.toFixed(4)).join(','));
      query.set('look', this.camera.target.map((x) => +x.toFixed(4)).join(','));
      query.set('fov', this.camera.fov);
    }
    if (this.at) query.set('at', this.at);
    if (this.clip) query.set('clip', this.clip.flat().join(','));
    if (this.mode === 'ao') query.set('ao_samples', isFinal ? '32' : '6');
    if (isFinal && width * height * this.msPerPixel < 300 &&
        ['colour', 'height', 'age', 'label'].includes(this.mode)) query.set('samples', '4');
    if (!JPEG_MODES.includes(this.mode)) return `${this.getAttribute('src')}/image.png?${query}`;
    query.set('quality', isFinal ? '95' : '85');
    return `${this.getAttribute('src')}/image.jpg?${query}`;
  }

  async fetchFrame(budget) {
    const number = this.nextFrame++;
    const [width, height] = this.sizeFor(budget);
    const nDrawn = this.nDrawn;
    const abort = new AbortController();
    const began = performance.now();
    const { headers } = this;
    const camera = this.camera.copy();
    this.inFlight.set(number, abort);
    try {
      const isFinal = budget === Infinity;
      const response = await fetch(this.url(width, height, isFinal), { headers, signal: abort.signal, cache: 'no-store' });
      if (!response.ok) throw Object.assign(new Error((await response.json().catch(() => ({}))).message || `the server answered ${response.status}`), { status: response.status });
      const bitmap = await createImageBitmap(await response.blob());
      if (!isFinal) this.measure(performance.now() - began, width * height);
      this.show(number, bitmap, width, height, performance.now() - began, camera);
      if (isFinal && nDrawn === this.nDrawn) this.finish();
    } catch (error) {
      if (error.name !== 'AbortError') this.refused(error, budget);
    }
    this.inFlight.delete(number);
    this.pump();
  }

  // The picture is as sharp as it gets; layers learn what hides them.
  async finish() {
    const nDrawn = this.nDrawn;
    if (!this.layers.isEmpty && this.hasView) {
      try {
        const height = Math.max(1, Math.round(DEPTH_PIXELS / this.aspect));
        const vec = ([x, y, z]) => ({ x, y, z });
        const reply = await this.call('scene_render', {
          name: this.name, at: this.atOf, mode: 'RENDER_DEPTH', width: DEPTH_PIXELS, height,
          view: { eye: vec(this.camera.eye), target: vec(this.camera.target) }, fovYDeg: this.camera.fov,
          clip: this.clip ? { low: vec(this.clip[0]), high: vec(this.clip[1]) } : undefined,
        });
        if (nDrawn !== this.nDrawn) return;
        this.layers.setDepth({ width: DEPTH_PIXELS, height, data: numbers(reply.pixels) });
        this.paintOverlay();
      } catch {
        this.layers.setDepth(null); // layers are seen through all things then
      }
    }
    if (nDrawn === this.nDrawn) this.dataset.sharp = 'true';
  }

  // What the server cannot draw in time is drawn smaller; what it cannot draw now, later.
  refused(error, budget) {
    if (error.status === 429 || error.status === 503) {
      this.costs.set(this.mode, this.msPerPixel * 2);
      this.mostPixels = Math.max(LEAST_PIXELS, this.mostPixels / 2);
      this.timer = setTimeout(() => this.want(budget), STILL_MS);
    } else {
      this.dispatchEvent(new CustomEvent('fault', { detail: error }));
    }
  }

  measure(ms, pixels) {
    const own = Math.max(ms - this.fixedMs, 0.2) / pixels;
    this.costs.set(this.mode, this.msPerPixel + 0.3 * (own - this.msPerPixel));
  }

  show(number, bitmap, width, height, ms, camera) {
    if (number < this.shownFrame) {
      bitmap.close();
      return;
    }
    this.shownFrame = number;
    this.shownCamera = camera;
    this.layers.depth = null; // of another picture
    this.picture.width = width;
    this.picture.height = height;
    const context = this.picture.getContext('2d', { willReadFrequently: this.mode === 'depth' });
    context.drawImage(bitmap, 0, 0);
    bitmap.close();
    if (this.mode === 'depth') stretch(context, width, height);
    this.paintOverlay();
    this.frames = [...this.frames.filter((t) => t > began(2000)), performance.now()];
    this.dispatchEvent(new CustomEvent('frame', { detail: { number, width, height, ms, perSecond: this.frames.length / 2 } }));
  }

  // --- moving -------------------------------------------------------------------------------

  listen() {
    this.addEventListener('contextmenu', (event) => event.preventDefault());
    this.addEventListener('pointerdown', (event) => this.press(event));
    this.addEventListener('pointermove', (event) => this.drag(event));
    this.addEventListener('pointerup', (event) => this.release(event));
    this.addEventListener('pointercancel', (event) => this.release(event));
    this.addEventListener('pointerleave', () => {
      this.pointer = null;
      this.paintOverlay();
    });
    this.addEventListener('dblclick', (event) => this.focusAt(event));
    this.addEventListener('wheel', (event) => {
      event.preventDefault();
      this.camera.zoom(Math.exp(clamp(event.deltaY, -200, 200) * 0.0016));
      this.moved();
    }, { passive: false });
    this.addEventListener('keydown', (event) => this.pressKey(event));
    this.addEventListener('keyup', (event) => this.keys.delete(event.code));
    this.addEventListener('blur', () => this.keys.clear());
  }

  // Where a pointer is in the picture, from 0 to 1.
  place(event) {
    const box = this.getBoundingClientRect();
    return [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
  }

  press(event) {
    this.focus({ preventScroll: true });
    this.setPointerCapture(event.pointerId);
    const pans = event.button === 2 || event.button === 1 || event.shiftKey;
    const acts = this.tool !== 'orbit' && event.button === 0 && !pans && !event.altKey;
    this.held = { x: event.clientX, y: event.clientY, pans, acts, far: 0 };
    if (acts) this.act('start', event);
    else this.classList.add('dragging');
  }

  drag(event) {
    this.pointer = this.place(event);
    if (!this.held) {
      if (this.tool !== 'orbit') this.hover();
      return;
    }
    const dx = event.clientX - this.held.x;
    const dy = event.clientY - this.held.y;
    this.held.x = event.clientX;
    this.held.y = event.clientY;
    this.held.far += Math.abs(dx) + Math.abs(dy);
    if (this.held.acts) {
      this.act('move', event);
      return;
    }
    if (this.held.pans) this.camera.pan(dx, dy, this.clientHeight);
    else this.camera.orbit(dx * 0.006, dy * 0.006);
    this.moved();
  }

  release(event) {
    if (this.held?.acts) this.act('end', event);
    else if (this.held && this.held.far < 4 && event.button === 0) this.act('click', event);
    this.held = null;
    this.classList.remove('dragging');
  }

  act(phase, event) {
    this.dispatchEvent(new CustomEvent('act', { detail: { phase, place: this.place(event) } }));
  }

  hover() {
    this.paintOverlay();
  }

  pressKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (KEYS[event.code]) {
      this.keys.add(event.code);
      event.preventDefault();
      if (!this.flight) this.fly(performance.now());
    }
    const steps = { ArrowLeft: [-0.08, 0], ArrowRight: [0.08, 0], ArrowUp: [0, 0.08], ArrowDown: [0, -0.08] };
    if (steps[event.key]) {
      this.camera.orbit(...steps[event.key]);
      event.preventDefault();
      this.moved();
    }
    if (event.key === '+' || event.key === '-') {
      this.camera.zoom(event.key === '+' ? 0.85 : 1 / 0.85);
      this.moved();
    }
    this.isFast = event.shiftKey;
  }

  fly(before) {
    this.flight = requestAnimationFrame((now) => {
      if (this.keys.size === 0) {
        this.flight = 0;
        return;
      }
      const metres = this.camera.distance * Math.min((now - before) / 1000, 0.1) * (this.isFast ? 2.5 : 0.8);
      const [f, r, u] = [...this.keys].reduce((sum, code) => add(sum, scale(KEYS[code], metres)), [0, 0, 0]);
      this.camera.move(f, r, u);
      this.moved();
      this.fly(now);
    });
  }

  moved() {
    this.hasView = true;
    this.draw(true);
    this.dispatchEvent(new CustomEvent('move'));
  }

  setView(eye, target) {
    if (!isVector(eye) || !isVector(target) || length(sub(eye, target)) < 1e-6) return;
    this.camera.look(eye, target);
    this.hasView = true;
    this.draw();
  }

  // Moves the camera so that all that is occupied is seen.
  async fit() {
    const found = await findBounds((body) => this.call('scene_export', body), this.name, this.depth);
    if (found) this.lookAtBox(...found);
    return found;
  }

  lookAtBox(low, high) {
    const middle = scale(add(low, high), 0.5);
    const radius = length(sub(high, low)) / 2 || 1;
    const distance = (0.76 * radius) / Math.sin(this.camera.fov * Math.PI / 360);
    this.setView(add(middle, scale([-0.62, -0.6, 0.51], distance)), middle);
  }

  async focusAt(event) {
    const hit = await this.cast(this.place(event)).catch(() => null);
    if (!hit) return;
    const from = this.camera.target;
    const distance = this.camera.distance;
    const near = Math.min(distance, Math.max(hit.distance * 0.6, this.camera.distance * 0.3));
    const start = performance.now();
    const step = (now) => {
      const t = clamp((now - start) / 250, 0, 1);
      const s = t * t * (3 - 2 * t);
      this.camera.target = add(scale(from, 1 - s), scale(hit.point, s));
      this.camera.distance = distance + (near - distance) * s;
      this.moved();
      if (t < 1) requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  }

  // --- looking ------------------------------------------------------------------------------

  // What is at a place of the picture; null where nothing is.
  async cast(place) {
    if (!this.isScene) return null;
    const eye = this.camera.eye;
    const direction = this.camera.ray(place[0], place[1], this.aspect);
    const [begin, end] = this.clip ? through(this.clip, eye, direction) : [0, Infinity];
    if (begin > end) return null;
    const reply = await this.call('scene_cast_rays', {
      name: this.name, at: this.atOf,
      origins: { dtype: 'FLOAT64', shape: [1, 3], values: add(eye, scale(direction, begin)) },
      directions: { dtype: 'FLOAT64', shape: [1, 3], values: direction },
    });
    const distance = numbers(reply.distances)[0] + begin;
    if (!(distance >= begin) || distance >= end) return null;
    return {
      distance,
      point: add(eye, scale(direction, distance)),
      voxel: [...numbers(reply.voxels)],
      normal: [...numbers(reply.normals)],
      material: reply.materials ? numbers(reply.materials)[0] : null,
      version: reply.seen?.version,
    };
  }

  // Layers and marks, as the shown picture's camera sees them.
  paintOverlay() {
    if (!this.overlay) return;
    const c = this.overlay.getContext('2d');
    const ratio = devicePixelRatio || 1;
    this.layers.draw(this.shownCamera, this.clientWidth, this.clientHeight, ratio);
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.clearRect(0, 0, this.clientWidth, this.clientHeight);
    for (const mark of this.marks) paintMark(c, this, mark);
    paintBrush(c, this);
    paintAxes(c, this);
  }

  // Replaces the layer of a name (layers.js); null takes it away.
  setLayer(name, layer) {
    this.layers.set(name, layer);
    this.paintOverlay();
    if (layer && this.isScene && !this.layers.depth) this.draw();
  }
}

// Where a ray goes through a box: from, to; a little inside, so that cut faces are hit.
function through([low, high], eye, direction) {
  let begin = 0;
  let end = Infinity;
  for (let i = 0; i < 3; i++) {
    const d = Math.abs(direction[i]) > 1e-12 ? direction[i] : 1e-12;
    const a = (low[i] - eye[i]) / d;
    const b = (high[i] - eye[i]) / d;
    begin = Math.max(begin, Math.min(a, b));
    end = Math.min(end, Math.max(a, b));
  }
  return [begin > 0 ? begin + 1e-6 * (1 + begin) : 0, end];
}

function began(ms) {
  return performance.now() - ms;
}

// Depth comes as millimetres in grey; shown from near to far over what is there.
function stretch(context, width, height) {
  const image = context.getImageData(0, 0, width, height);
  const d = image.data;
  let low = 255;
  let high = 1;
  for (let i = 0; i < d.length; i += 4) {
    if (d[i] === 0) continue;
    low = Math.min(low, d[i]);
    high = Math.max(high, d[i]);
  }
  for (let i = 0; i < d.length; i += 4) {
    const t = d[i] === 0 ? -1 : (d[i] - low) / Math.max(high - low, 1);
    const [r, g, b] = t < 0 ? [16, 21, 27] : [255 - 215 * t, 235 - 160 * t, 150 + 10 * t - 40 * t * t];
    d[i] = r;
    d[i + 1] = g;
    d[i + 2] = b;
  }
  context.putImageData(image, 0, 0);
}

customElements.define('voxel-view', VoxelView);
