// SPDX-License-Identifier: Apache-2.0
// Vectors of three numbers, and the camera: z is up, lengths are metres.

export const add = (a, b) => [a[0] + b[0], a[1] + b[1], a[2] + b[2]];
export const sub = (a, b) => [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
export const scale = (a, s) => [a[0] * s, a[1] * s, a[2] * s];
export const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
export const length = (a) => Math.hypot(a[0], a[1], a[2]);
export const normalize = (a) => scale(a, 1 / (length(a) || 1));
export const cross = (a, b) => [
  a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0],
];
export const mix = (a, b, t) => add(scale(a, 1 - t), scale(b, t));
export const clamp = (x, low, high) => Math.min(high, Math.max(low, x));
export const isVector = (a) => Array.isArray(a) && a.length === 3 && a.every(Number.isFinite);

const MOST_PITCH = 1.553; // 89 degrees

// Turns around a target: azimuth and elevation of the eye as seen from it.
export class Camera {
  constructor() {
    this.target = [0, 0, 0];
    this.distance = 10;
    this.azimuth = -2.2;
    this.elevation = 0.5;
    this.fov = 50; // degrees, from the top to the bottom edge
  }

  copy() {
    return Object.assign(new Camera(), this);
  }

  get backward() {
    const c = Math.cos(this.elevation);
    return [c * Math.cos(this.azimuth), c * Math.sin(this.azimuth), Math.sin(this.elevation)];
  }

  get eye() {
    return add(this.target, scale(this.backward, this.distance));
  }

  // Forward, right, up.
  get axes() {
    const forward = scale(this.backward, -1);
    const right = normalize(cross(forward, [0, 0, 1]));
    return [forward, right, cross(right, forward)];
  }

  look(eye, target) {
    const d = sub(eye, target);
    this.target = target;
    this.distance = Math.max(length(d), 1e-3);
    this.azimuth = Math.atan2(d[1], d[0]);
    this.elevation = clamp(Math.asin(clamp(d[2] / this.distance, -1, 1)), -MOST_PITCH, MOST_PITCH);
  }

  orbit(dx, dy) {
    this.azimuth -= dx;
    this.elevation = clamp(this.elevation + dy, -MOST_PITCH, MOST_PITCH);
  }

  // Moves eye and target; forward, right, up in metres.
  move(forward, right, up) {
    const [f, r] = this.axes;
    const level = normalize([f[0], f[1], 0]);
    this.target = add(this.target, add(add(scale(level, forward), scale(r, right)), [0, 0, up]));
  }

  // Moves in the picture's plane, pixels of a picture of this height.
  pan(dx, dy, height) {
    const [, r, u] = this.axes;
    const metres = (2 * this.distance * Math.tan(this.fov * Math.PI / 360)) / height;
    this.target = add(this.target, add(scale(r, -dx * metres), scale(u, dy * metres)));
  }

  zoom(factor) {
    this.distance = clamp(this.distance * factor, 0.02, 1e6);
  }

  // Direction through a point of the picture, x and y from 0 to 1.
  ray(x, y, aspect) {
    const [f, r, u] = this.axes;
    const t = Math.tan(this.fov * Math.PI / 360);
    return normalize(add(f, add(scale(r, (2 * x - 1) * t * aspect), scale(u, (1 - 2 * y) * t))));
  }

  // Where a point is in the picture, from 0 to 1, and how far away; null behind the eye.
  project(p, aspect) {
    const [f, r, u] = this.axes;
    const d = sub(p, this.eye);
    const z = dot(d, f);
    if (z <= 1e-6) return null;
    const t = Math.tan(this.fov * Math.PI / 360) * z;
    return [(dot(d, r) / (t * aspect) + 1) / 2, (1 - dot(d, u) / t) / 2, z];
  }
}
