// SPDX-License-Identifier: Apache-2.0
// A tutorial against this very server: each step is a request that can be changed and run; the scene
// that they are about is shown beside them.
import './viewer.js';
import { el, ms } from './names.js';
import { pretty, run } from './console.js';

const NAME = 'tutorial';
const points = (rows) => ({ dtype: 'FLOAT64', shape: [rows.length, rows[0].length], values: rows.flat() });

const STEPS = [
  ['The server', 'It says who it is, and what it may take.', 'server_info', {}],
  ['A scene', 'A cube of voxels of 5 cm, 25.6 m a side, with materials. Nothing is in it yet. If there is one of this name, you get ALREADY_EXISTS.', 'scene_create',
    { name: NAME, spec: { voxelSizeM: 0.05, depth: 9, materialBits: 8, palette: [{ name: 'ground', rgb: 0x8a9a6b }, { name: 'house', rgb: 0xd8cbb0 }, { name: 'ball', rgb: 0xc0504d }] } }],
  ['An edit', 'Shapes fill, erase or paint voxels, all of one request together or none. It makes a version.', 'scene_edit',
    { name: NAME, operations: [
      { box: { low: { x: -6, y: -6, z: -0.4 }, high: { x: 6, y: 6, z: 0 } }, material: 0 },
      { box: { low: { x: -2, y: -2, z: 0 }, high: { x: 2, y: 2, z: 2.5 } }, material: 1 },
      { ball: { centre: { x: 3, y: -3, z: 1 }, radius: 1 }, material: 2 }] }],
  ['A ray', 'What a lidar would see from 5 m above the corner: how far it is, which voxel, which material.', 'scene_cast_rays',
    { name: NAME, origins: points([[-5, -5, 5]]), directions: points([[1, 1, -0.9]]) }],
  ['How far away are obstacles?', 'Distances for a planner, with gradients. These places are in the air beside the house.', 'scene_distance',
    { name: NAME, points: points([[2.5, 0, 1], [4, 0, 1]]), maxDistanceM: 3 }],
  ['Who made this?', 'The newest version that changed a voxel, with the token and client that made it.', 'scene_changed',
    { name: NAME, points: points([[0, 0, 2], [3, -3, 1]]) }],
  ['Undo', 'The newest change of this page is taken back, without what others did after it. Look at the picture.', 'scene_undo', { name: NAME }],
  ['Redo', 'And it is there again. Undoing is a change too: nothing is ever lost while its version is kept.', 'scene_redo', { name: NAME }],
  ['The log', 'All versions that are kept. Each can be looked at, by `at`, in every query.', 'scene_log', { name: NAME }],
  ['The end', 'Drops the scene.', 'scene_drop', { name: NAME }],
];

export function tutorialPage(app) {
  const view = el('voxel-view', { src: `/v1/scenes/${NAME}`, live: '' });
  view.waits = true;
  const note = el('div', { class: 'hud' }, el('div', {}, 'The scene appears here after the third step.'));
  view.addEventListener('frame', () => note.remove());
  const show = async () => {
    view.waits = false;
    if (!view.hasView) await view.fit().catch(() => null);
    if (!view.stream) view.follow();
    view.draw();
  };
  const steps = STEPS.map(([title, text, method, body], i) => {
    const editor = el('textarea', { rows: '5', spellcheck: 'false', 'aria-label': `Request of step ${i + 1}` });
    editor.value = JSON.stringify(body, null, 1).replace(/\n\s*/g, ' ').replace(/(\}, )(?=\{ "(box|ball))/g, '$1\n');
    const result = el('pre', { class: 'reply', hidden: true, tabindex: '0', 'aria-label': `Reply of step ${i + 1}` });
    const status = el('span', { class: 'dim', role: 'status' });
    const button = el('button', { type: 'button', class: 'primary' }, 'Run');
    button.addEventListener('click', async () => {
      button.disabled = true;
      try {
        const reply = await run(method, editor.value);
        status.textContent = `${reply.status}, ${ms(reply.ms)}`;
        result.hidden = false;
        result.textContent = pretty(reply.text).slice(0, 1500);
        result.classList.toggle('bad', reply.status >= 400);
        section.dataset.status = String(reply.status);
        if (/scene_(edit|undo|redo)/.test(method)) await show();
      } catch (error) {
        app.fail(error);
      }
      button.disabled = false;
    });
    const section = el('section', { class: 'panel step' }, el('h2', {}, `${i + 1}. ${title}`), el('p', {}, text),
      el('code', {}, `POST /v1/${method}`), editor, el('div', { class: 'row' }, button,
        el('a', { href: `#/console/${method}` }, 'in the console'), status), result);
    return section;
  });
  return {
    element: el('div', { class: 'lesson' }, el('div', { class: 'page' }, el('div', { class: 'title' }, el('h1', {}, 'Tutorial'),
      el('span', { class: 'dim' }, 'Ten requests to this server.')), ...steps), el('div', { class: 'view' }, view, note)),
    leave() {},
  };
}
