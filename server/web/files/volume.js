// SPDX-License-Identifier: Apache-2.0
// One volume: its surface, live.
import './viewer.js';
import { bytes, count, el, metres } from './names.js';
import { Poses } from './poses.js';
import { getJson } from './session.js';
import { VolumeMesh } from './volume_mesh.js';

export function volumePage(app, name) {
  const facts = el('dl', { class: 'facts-list' });
  const state = el('div', { role: 'status' }, 'The surface is on its way.');
  const view = el('voxel-view', { src: `/v1/volumes/${name}` });
  let isFramed = false;
  const home = () => {
    const found = mesh.bounds();
    if (found) view.lookAtBox(...found);
  };
  const mesh = new VolumeMesh(name, async (layer) => {
    view.setLayer('surface', layer);
    if (layer) state.textContent = `${count(mesh.nTriangles)} triangles`;
    else state.textContent = mesh.isDropped ? 'The volume was dropped.' : 'There is no surface yet.';
    view.dataset.triangles = String(mesh.nTriangles);
    if (!isFramed && layer) {
      isFramed = true;
      home();
    }
    try {
      const { volume: v } = await getJson(`/v1/volumes/${name}`);
      facts.replaceChildren(...[
        ['voxel', metres(v.voxelSizeM)], ['truncation', metres(v.truncationM)], ['blocks', count(v.nBlocks)],
        ['memory', bytes(v.nBytes || 0)], ['images', count(v.nImages)],
        ['colours', v.colour ? 'yes' : 'no'], ['kept', v.durable ? 'on disk' : 'in memory'],
      ].flatMap(([k, text]) => [el('dt', {}, k), el('dd', {}, text)]));
    } catch {
      // Dropped meanwhile; the mesh says so.
    }
  }, (live, error) => {
    app.setLive(live, error);
    if (error) state.textContent = error.status === 404 ? 'There is no such volume.' : error.message;
  });
  const poses = new Poses(view, (error, what) => app.fail(error, what));
  const layers = el('section', { 'aria-label': 'Layers', hidden: true }, el('h2', {}, 'Layers'), poses.element);
  poses.load().then(() => { layers.hidden = poses.element.children.length === 0; }).catch(() => null);
  const element = el('div', { class: 'stage flat' },
    el('div', { class: 'view' }, view, el('div', { class: 'hud' }, state),
      el('div', { class: 'tools', role: 'toolbar', 'aria-label': 'Tools' }, el('button', { type: 'button', title: 'The whole volume (R)', onclick: home }, 'Whole'))),
    el('aside', { class: 'side', 'aria-label': 'Volume' },
      el('section', {}, el('h1', { class: 'scene-name' }, name), facts),
      layers,
      el('p', { class: 'dim' }, 'Drag turns, right drag moves, the wheel zooms.')));
  const onKey = (event) => event.key === 'r' && !event.target.closest('input, select, textarea, dialog') && home();
  addEventListener('keydown', onKey);
  return {
    element,
    leave() {
      mesh.close();
      poses.close();
      removeEventListener('keydown', onKey);
    },
  };
}
