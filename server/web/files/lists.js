// SPDX-License-Identifier: Apache-2.0
// The overview: scenes, maps and networks, live; and the list of methods.
import { ago, bytes, count, el, metres } from './names.js';
import { call, get, getJson, Stream } from './session.js';
import { exampleOperations, examplePalette } from './example.js';

const THUMB_WIDTH = 400;
const THUMB_HEIGHT = 225;

function sideOf(spec) {
  return metres(spec.voxelSizeM * 2 ** (spec.depth || 17));
}

class Tile {
  constructor(name) {
    this.name = name;
    this.version = '';
    this.image = el('img', { class: 'thumb', alt: '', loading: 'lazy' });
    this.first = el('span', {});
    this.second = el('span', { class: 'num' });
    this.third = el('span', {});
    this.fourth = el('span', { class: 'num' });
    this.element = el('a', { class: 'tile', href: `#/scene/${name}` },
      this.image,
      el('div', { class: 'body' },
        el('span', { class: 'name' }, name),
        el('span', { class: 'facts' }, this.first, this.second),
        el('span', { class: 'facts' }, this.third, this.fourth)));
    this.element.addEventListener('animationend', () => this.element.classList.remove('changed'));
  }

  set(info) {
    const key = `${info.generation}-${info.version}`;
    this.info = info;
    this.first.textContent = `${sideOf(info.spec)} a side, voxels of ${metres(info.spec.voxelSizeM)}`;
    this.second.textContent = `v${info.version}`;
    this.fourth.textContent = bytes(info.nBytes || 0);
    this.tick();
    if (key === this.version) return;
    if (this.version) this.element.classList.add('changed');
    this.version = key;
    // One picture at a time: while one is under way the next version waits.
    if (this.isLoading) return;
    this.load(key);
  }

  async load(key) {
    this.isLoading = true;
    try {
      const path = `/v1/scenes/${this.name}/image.png?size=${THUMB_WIDTH}x${THUMB_HEIGHT}&samples=4`;
      const picture = URL.createObjectURL(await (await get(path)).blob());
      this.image.onload = () => URL.revokeObjectURL(picture);
      this.image.src = picture;
    } catch {
      this.image.removeAttribute('src'); // dropped meanwhile, or empty: the tile says the rest
    }
    this.isLoading = false;
    if (key !== this.version) this.load(this.version);
  }

  tick() {
    if (this.info) this.third.textContent = `changed ${ago(this.info.changedNs)}`;
  }
}

function table(columns, rows) {
  return el('div', { class: 'table-wrap' }, el('table', {},
    el('thead', {}, el('tr', {}, ...columns.map(([name, kind]) => el('th', { class: kind || '' }, name)))),
    el('tbody', {}, ...rows.map((row) => el('tr', {},
      ...row.map((cell, i) => el('td', { class: columns[i][1] || '' }, cell)))))));
}

function mapRow(map) {
  const values = (map.spec?.values || []).map((v) => `${v.name}: ${(v.dtype || '').toLowerCase()}`);
  return [map.name, values.join(', ') || 'keys alone', count(map.nEntries), bytes(map.nBytes || 0), ago(map.createdNs)];
}

function volumeRow(v) {
  return [el('a', { href: `#/volume/${v.name}` }, v.name), metres(v.voxelSizeM || 0), count(v.nBlocks), count(v.nImages),
    bytes(v.nBytes || 0), ago(v.createdNs)];
}

function networkRow(network) {
  return [network.name, (network.precision || '').toLowerCase(), count(network.nParameters),
    bytes(network.nBytes || 0), count(network.nRequests), (network.digest || '').slice(0, 12)];
}

export function overviewPage(app) {
  const tiles = new Map();
  const grid = el('div', { class: 'tiles' });
  const summary = el('span', { class: 'dim' });
  const example = el('button', { type: 'button', onclick: makeExample }, 'Make an example scene');
  const empty = el('div', { class: 'panel empty', hidden: true },
    el('div', {}, 'There is no scene yet. Make one with '),
    el('code', {}, 'voxelctl scene create yard --size 0.1'),
    el('div', {}, 'or begin with the ', el('a', { href: '#/tutorial' }, 'tutorial'), '.'));
  const maps = el('div', {});
  const networks = el('div', {});
  const volumes = el('div', {});
  const element = el('div', { class: 'page' },
    el('div', { class: 'title' }, el('h1', {}, 'Scenes'), summary, el('span', { class: 'spacer' }), example),
    grid, empty,
    el('section', { class: 'panel' }, el('h2', {}, 'Volumes'), volumes),
    el('section', { class: 'panel' }, el('h2', {}, 'Maps'), maps),
    el('section', { class: 'panel' }, el('h2', {}, 'Networks'), networks));

  function arrange(infos, list) {
    const names = infos.map((s) => s.name);
    for (const [name, tile] of tiles) {
      if (!names.includes(name)) {
        tile.element.remove();
        tiles.delete(name);
      }
    }
    for (const info of infos) {
      let tile = tiles.get(info.name);
      if (!tile) {
        tile = new Tile(info.name);
        tiles.set(info.name, tile);
      }
      tile.set(info);
      grid.append(tile.element);
    }
    empty.hidden = infos.length > 0;
    example.hidden = !app.canWrite;
    summary.textContent = infos.length
      ? `${count(infos.length)}, ${bytes(list.nBytes || 0)} of ${bytes(list.limitBytes || 0)}` : '';
  }

  let isLoading = false;
  let again = false;
  async function load() {
    if (isLoading) {
      again = true;
      return;
    }
    isLoading = true;
    try {
      const list = await getJson('/v1/scenes');
      arrange(list.scenes || [], list);
    } catch (error) {
      app.fail(error, 'The scenes cannot be listed');
    }
    isLoading = false;
    if (again) {
      again = false;
      setTimeout(load, 300);
    }
  }

  async function loadOthers() {
    try {
      const { maps: listed = [] } = await getJson('/v1/maps');
      maps.replaceChildren(listed.length
        ? table([['name'], ['values'], ['entries', 'num'], ['memory', 'num'], ['made', 'num']], listed.map(mapRow))
        : el('p', { class: 'dim' }, 'There is no map. Maps are made of drives: voxelctl map merge scans/*.pcd --map drive --size 0.1'));
      const { volumes: fused = [] } = await getJson('/v1/volumes');
      volumes.replaceChildren(fused.length
        ? table([['name'], ['voxel', 'num'], ['blocks', 'num'], ['images', 'num'], ['memory', 'num'], ['made', 'num']], fused.map(volumeRow))
        : el('p', { class: 'dim' }, 'There is no volume. Volumes are fused of depth images: voxelctl volume --help'));
      const { networks: loaded = [], available = [] } = await getJson('/v1/networks');
      networks.replaceChildren(loaded.length
        ? table([['name'], ['precision'], ['parameters', 'num'], ['memory', 'num'], ['requests', 'num'], ['digest', 'mono']], loaded.map(networkRow))
        : el('p', { class: 'dim' }, available.length
          ? `None is loaded. There are: ${available.join(', ')}`
          : 'None is loaded, and networks_dir has none.'));
    } catch (error) {
      app.fail(error, 'Volumes, maps and networks cannot be listed');
    }
  }

  async function makeExample() {
    example.disabled = true;
    const name = `example-${Date.now().toString(36)}`;
    try {
      await call('scene_create', {
        name, spec: { voxelSizeM: 0.05, depth: 9, materialBits: 8, palette: examplePalette },
      }, { changes: true });
      await call('scene_edit', { name, operations: exampleOperations() }, { changes: true });
      location.hash = `#/scene/${name}`;
    } catch (error) {
      app.fail(error, 'The example could not be made');
    }
    example.disabled = false;
  }

  load();
  loadOthers();
  const stream = new Stream('/v1/watch', load, app.setLive);
  const timer = setInterval(() => tiles.forEach((t) => t.tick()), 5000);
  const slow = setInterval(() => !document.hidden && loadOthers(), 5000);
  return {
    element,
    leave() {
      stream.close();
      clearInterval(timer);
      clearInterval(slow);
    },
  };
}

export function apiPage(app) {
  const body = el('div', {});
  const element = el('div', { class: 'page' },
    el('div', { class: 'title' }, el('h1', {}, 'API'),
      el('span', { class: 'dim' }, 'Everything that this page does, it does by these.')),
    el('section', { class: 'panel' }, body),
    el('p', { class: 'row' }, el('a', { href: '/v1/openapi.json' }, 'OpenAPI'),
      el('a', { href: '/metrics' }, 'metrics'), el('a', { href: '/v1/status' }, 'status'),
      el('a', { href: '/v1/health/ready' }, 'health')));
  getJson('/v1/openapi.json').then((api) => {
    const rows = [];
    for (const [path, verbs] of Object.entries(api.paths)) {
      for (const [verb, what] of Object.entries(verbs)) {
        if (what.summary && !what.tags?.includes('dashboard')) rows.push([el('code', {}, `${verb.toUpperCase()} ${path}`), what.summary]);
      }
    }
    body.append(table([['method'], ['what it does']], rows));
  }).catch((error) => app.fail(error));
  return { element, leave() {} };
}
