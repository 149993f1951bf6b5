// SPDX-License-Identifier: Apache-2.0
// An example scene: a small house in a garden, as one edit.

const NAMES = [
  ['none', 0x808080], ['grass', 0x6f9f4f], ['path', 0xb9ab92], ['wall', 0xe8e0d0],
  ['roof', 0xb1533f], ['wood', 0x8a5f3c], ['glass', 0x86b7d6], ['leaves', 0x4f8a45],
  ['blossom', 0xd98fb0], ['water', 0x4f8fc4], ['stone', 0x8d9096], ['car', 0xd9a441],
  ['dark', 0x33373d],
];

export const examplePalette = NAMES.map(([name, rgb]) => ({ name, rgb }));

const material = (name) => NAMES.findIndex(([n]) => n === name);
const vec = ([x, y, z]) => ({ x, y, z });
const box = (low, high, name) => ({ box: { low: vec(low), high: vec(high) }, material: material(name) });
const ball = (centre, radius, name) => ({ ball: { centre: vec(centre), radius }, material: material(name) });
const pole = (a, b, radius, name) => ({ capsule: { a: vec(a), b: vec(b), radius }, material: material(name) });
const cut = (low, high) => ({ box: { low: vec(low), high: vec(high) }, action: 'SCENE_ERASE' });

// Ground from x, y = -9 to 9 in steps of half a metre: gentle hills, level around the house.
function ground() {
  const n = 36;
  const values = [];
  for (let i = 0; i < n; i++) {
    for (let j = 0; j < n; j++) {
      const x = -9 + (i + 0.5) / 2;
      const y = -9 + (j + 0.5) / 2;
      const far = Math.max(0, Math.hypot(x * 0.9, y) - 5.2);
      values.push(+(0.16 * far * (1 + Math.sin(0.9 * x) * Math.cos(0.7 * y + 1))).toFixed(3));
    }
  }
  return {
    heightfield: {
      heights: { dtype: 'FLOAT64', shape: [n, n], values }, x: -9, y: -9, cell: 0.5, lowZ: -0.5,
    },
    material: material('grass'),
  };
}

function house() {
  const made = [
    box([-2.5, -2, 0], [2.5, 2, 2.6], 'wall'), cut([-2.3, -1.8, 0.1], [2.3, 1.8, 2.6]),
    cut([-0.5, -2.1, 0.05], [0.5, -1.7, 2]), box([-0.5, -1.95, 0.05], [0.5, -1.85, 2], 'wood'),
  ];
  for (const x of [-1.9, 1.1]) {
    made.push(cut([x, -2.1, 0.9], [x + 0.8, -1.7, 1.8]), box([x, -1.95, 0.9], [x + 0.8, -1.85, 1.8], 'glass'));
  }
  made.push(cut([2.2, -0.7, 0.9], [2.6, 0.7, 1.8]), box([2.35, -0.7, 0.9], [2.45, 0.7, 1.8], 'glass'));
  for (let i = 0; i < 24; i++) {
    const z = 2.6 + i * 0.075;
    const y = 2.4 * (1 - i / 24);
    made.push(box([-2.8, -y, z], [2.8, y, z + 0.08], 'roof'));
  }
  made.push(box([1.2, 0.4, 2.6], [1.75, 0.95, 4.9], 'stone'), cut([1.3, 0.5, 3.8], [1.65, 0.85, 5]));
  return made;
}

function tree(x, y, size, leaves) {
  return [
    pole([x, y, -0.2], [x, y, 1.6 * size], 0.13 * size, 'wood'),
    ball([x, y, 2.2 * size], 0.85 * size, leaves),
    ball([x + 0.45 * size, y + 0.2 * size, 1.9 * size], 0.55 * size, leaves),
    ball([x - 0.4 * size, y - 0.25 * size, 2 * size], 0.6 * size, leaves),
  ];
}

function garden() {
  const made = [
    box([-0.55, -8.9, -0.4], [0.55, -2, 0.05], 'path'),
    ball([4.9, -3.6, -1.35], 2, 'water'), box([2.8, -5.8, 0.0], [7, -1.4, 1], 'none'),
  ];
  made[2] = cut([2.8, -5.8, 0.03], [7, -1.4, 0.8]);
  for (let i = 0; i < 22; i++) {
    const a = (i / 22) * 2 * Math.PI;
    made.push(ball([4.9 + 1.6 * Math.cos(a), -3.6 + 1.6 * Math.sin(a), 0.02], 0.14 + 0.05 * (i % 3), 'stone'));
  }
  for (const x of [-8, -6.6, -5.2, -3.8, -2.4, 1.6, 3, 4.4, 5.8, 7.2]) {
    made.push(box([x, -8.4, 0], [x + 0.12, -8.28, 1.3], 'wood'));
  }
  made.push(box([-8, -8.37, 0.95], [-1.2, -8.31, 1.1], 'wood'), box([1.2, -8.37, 0.95], [7.4, -8.31, 1.1], 'wood'));
  return made;
}

function car() {
  const made = [
    box([-6.4, -6, 0.25], [-4.7, -2.4, 0.75], 'car'), box([-6.3, -5.2, 0.75], [-4.8, -3, 1.3], 'car'),
    box([-6.42, -4.9, 0.8], [-4.68, -3.3, 1.2], 'glass'),
  ];
  for (const y of [-5.2, -3.2]) {
    made.push(pole([-6.35, y, 0.3], [-4.75, y, 0.3], 0.3, 'dark'));
  }
  return made;
}

export function exampleOperations() {
  return [
    ground(), ...garden(), ...house(), ...car(), ...tree(-5.5, 3.5, 1.3, 'leaves'),
    ...tree(-3.2, 6, 1, 'blossom'), ...tree(5.6, 4.4, 1.5, 'leaves'), ...tree(7.2, 0.6, 0.9, 'blossom'),
    ...tree(-7.6, -0.6, 1, 'leaves'), ...tree(0.8, 7, 1.2, 'leaves'),
  ];
}
