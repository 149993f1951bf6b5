// SPDX-License-Identifier: Apache-2.0
// Elements, and numbers as people read them. All text goes through textContent: a name of
// somebody else's is never markup.

export function el(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(properties)) {
    if (key === 'class') made.className = value;
    else if (key.startsWith('on')) made.addEventListener(key.slice(2), value);
    else if (key in made && typeof value !== 'string') made[key] = value;
    else made.setAttribute(key, value);
  }
  made.append(...children.filter((c) => c !== null && c !== undefined));
  return made;
}

export function bytes(n) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let i = 0;
  for (n = Number(n); n >= 1024 && i < units.length - 1; i++) n /= 1024;
  return `${n < 10 && i > 0 ? n.toFixed(1) : Math.round(n)} ${units[i]}`;
}

export const count = (n) => Number(n ?? 0).toLocaleString('en');

export function metres(m) {
  if (Math.abs(m) < 1) return `${+(m * 100).toPrecision(3)} cm`;
  return `${+m.toPrecision(4)} m`;
}

export function ms(x) {
  if (x < 10) return `${x.toFixed(2)} ms`;
  return x < 1000 ? `${Math.round(x)} ms` : `${(x / 1000).toFixed(1)} s`;
}

export function duration(s) {
  if (s < 120) return `${Math.floor(s)} s`;
  if (s < 7200) return `${Math.floor(s / 60)} min`;
  return s < 172800 ? `${Math.floor(s / 3600)} h` : `${Math.floor(s / 86400)} days`;
}

// Of a time in nanoseconds since 1970.
export function ago(ns) {
  const s = Date.now() / 1000 - Number(ns) / 1e9;
  return s < 3 ? 'just now' : `${duration(Math.max(s, 0))} ago`;
}

export const hex = (rgb) => `#${(rgb >>> 0 & 0xffffff).toString(16).padStart(6, '0')}`;

// Colours of materials without an entry in the palette.
export function fallbackColour(material) {
  const hue = (material * 137.508) % 360;
  return `hsl(${hue.toFixed(0)} 45% 58%)`;
}

const READERS = {
  INT8: [Int8Array, 1], UINT8: [Uint8Array, 1], INT16: [Int16Array, 2], UINT16: [Uint16Array, 2],
  INT32: [Int32Array, 4], UINT32: [Uint32Array, 4], FLOAT32: [Float32Array, 4],
  FLOAT64: [Float64Array, 8], INT64: [BigInt64Array, 8], UINT64: [BigUint64Array, 8],
};

// Colours from low to high, 0 to 1: blue over green and yellow to red.
export function ramp(t) {
  const x = Math.min(Math.max(t, 0), 1);
  const f = (a, b) => Math.round(255 * Math.min(Math.max(1.5 - Math.abs(4 * x - a) + b, 0), 1));
  return [f(3, 0), f(2, 0), f(1, 0)];
}

// An array of numbers as a tensor of a JSON request.
export function tensor(values, shape) {
  const [dtype] = Object.entries(READERS).find(([, [Kind]]) => values instanceof Kind);
  const raw = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
  let text = '';
  for (let i = 0; i < raw.length; i += 8192) text += String.fromCharCode(...raw.subarray(i, i + 8192));
  return { dtype, shape, data: btoa(text) };
}

// The numbers of a tensor in a JSON reply.
export function numbers(tensor) {
  if (!tensor) return [];
  if (tensor.values) return tensor.values.map(Number);
  if (!tensor.data) return [];
  const [Kind, width] = READERS[tensor.dtype];
  const raw = Uint8Array.from(atob(tensor.data), (c) => c.charCodeAt(0));
  return new Kind(raw.buffer, 0, raw.length / width);
}
