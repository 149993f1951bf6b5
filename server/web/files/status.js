// SPDX-License-Identifier: Apache-2.0
// What the server does now, from /v1/status once a second.
import { ago, bytes, count, duration, el, ms } from './names.js';
import { getJson } from './session.js';
import { Chart } from './charts.js';

const EVERY_MS = 1000;
const STAGES = { waits: 'waits for its turn', runs: 'runs', commits: 'waits for the disk' };

// Requests that people and programs sent; what pages like this one ask for all the time is not among them.
const OWN = new Set(['status', 'scene_watch', 'volume_watch']);

function totals(status) {
  const sum = { ok: 0, failed: 0, ms: 0 };
  for (const m of status.methods || []) {
    if (OWN.has(m.name)) continue;
    const n = Number(m.nOk || 0) + Number(m.nFailed || 0);
    sum.ok += Number(m.nOk || 0);
    sum.failed += Number(m.nFailed || 0);
    sum.ms += n * (m.meanMs || 0);
  }
  return sum;
}

function owner(name, used, limit) {
  const bar = el('i', {});
  const share = limit > 0 ? Math.min(1, used / limit) : 0;
  bar.style.width = `${(100 * share).toFixed(1)}%`;
  return el('div', {},
    el('div', { class: 'row' }, el('span', {}, name), el('span', { class: 'spacer' }),
      el('span', { class: 'num dim' }, limit > 0 ? `${bytes(used)} of ${bytes(limit)}` : bytes(used))),
    limit > 0 ? el('div', { class: 'meter', role: 'img', 'aria-label': `${Math.round(100 * share)} per cent` }, bar) : null);
}

function owners(s) {
  const n = (key) => Number(s[key] || 0);
  return [
    owner('Scenes', n('sceneBytes'), n('sceneLimitBytes')),
    owner('Maps', n('mapBytes'), n('mapLimitBytes')),
    owner('Networks', n('networkBytes'), n('networkLimitBytes')),
    owner('Device', n('deviceBytes'), n('deviceBudgetBytes')),
    owner('Host, of the engine', n('hostBytes'), n('hostBudgetBytes')),
    owner('Requests under way', n('inflightBytes'), n('inflightLimitBytes')),
  ];
}

function rows(body, items) {
  body.replaceChildren(...items.map((cells) => el('tr', {},
    ...cells.map(([text, kind]) => el('td', { class: kind || '' }, text)))));
}

function panel(title, columns, body) {
  return el('section', { class: 'panel' }, el('h2', {}, title),
    el('div', { class: 'table-wrap', tabindex: '0', role: 'region', 'aria-label': title }, el('table', {},
      el('thead', {}, el('tr', {}, ...columns.map(([name, kind]) => el('th', { class: kind || '' }, name)))), body)));
}

export function statusPage(app) {
  const charts = {
    requests: new Chart({ title: 'Requests a second', format: (x) => x.toFixed(x < 10 ? 1 : 0), series: ['answered', 'refused or failed'] }),
    latency: new Chart({ title: 'Mean time of a request', format: ms, series: ['mean'], least: 0.5 }),
    queue: new Chart({ title: 'Queue', format: (x) => String(Math.round(x)), series: ['waiting', 'running'], least: 4 }),
    memory: new Chart({ title: 'Memory', format: bytes, series: ['of the process', 'device', 'host'], least: 64 << 20, isBinary: true }),
  };
  const state = el('span', { class: 'badge' }, '…');
  const uptime = el('span', { class: 'dim' });
  const memory = el('div', { class: 'owners' });
  const slow = el('tbody', {});
  const current = el('tbody', {});
  const methods = el('tbody', {});
  const element = el('div', { class: 'page' },
    el('div', { class: 'title' }, el('h1', {}, 'Status'), state, uptime),
    el('div', { class: 'charts' }, ...Object.values(charts).map((c) => c.element)),
    el('section', { class: 'panel' }, el('h2', {}, 'Memory by owner'), memory),
    panel('Running and waiting', [['method'], ['state'], ['token'], ['client'], ['request'], ['waited', 'num'], ['engine', 'num'], ['so far', 'num'], ['left', 'num']], current),
    panel('Slow requests', [['method'], ['code'], ['waited', 'num'], ['took', 'num'], ['client'], ['request'], ['when', 'num']], slow),
    panel('Methods', [['method'], ['answered', 'num'], ['failed', 'num'], ['mean', 'num']], methods));

  let before = null;
  function take(s) {
    const now = { at: performance.now(), ...totals(s) };
    const n = (key) => Number(s[key] || 0);
    state.textContent = s.state;
    uptime.textContent = `for ${duration(s.uptimeS || 0)}; ${count(s.running || 0)} running, ${count(s.queueDepth || 0)} of ${count(s.queueLimit || 0)} waiting`;
    if (before && now.ok >= before.ok) {
      const seconds = (now.at - before.at) / 1000;
      const ok = now.ok - before.ok;
      const failed = now.failed - before.failed;
      charts.requests.add(ok / seconds, failed / seconds);
      charts.latency.add(ok + failed > 0 ? Math.max(0, (now.ms - before.ms) / (ok + failed)) : 0);
    }
    before = now;
    charts.queue.add(n('queueDepth'), n('running'));
    charts.memory.add(n('residentBytes'), n('deviceBytes'), n('hostBytes'));
    memory.replaceChildren(...owners(s));
    rows(slow, (s.slow || []).slice(0, 25).map((r) => [
      [r.method || ''], [r.code || 'OK'], [ms(r.queueMs || 0), 'num'], [ms(r.totalMs || 0), 'num'],
      [r.clientId || '', 'mono'], [r.requestId || '', 'mono'], [ago(r.finishedNs || 0), 'num'],
    ]));
    if (!slow.children.length) rows(slow, [[['No request took 10 ms or more.', 'dim']]]);
    rows(current, (s.current || []).map((r) => [
      [r.method || ''], [STAGES[r.stage] || r.stage || ''], [r.by || ''], [r.clientId || '', 'mono'],
      [r.requestId || '', 'mono'], [ms(r.waitMs || 0), 'num'], [ms(r.engineMs || 0), 'num'],
      [ms(r.totalMs || 0), 'num'], [ms(r.leftMs || 0), 'num'],
    ]));
    if (!current.children.length) rows(current, [[['Nothing runs or waits just now.', 'dim']]]);
    rows(methods, (s.methods || [])
      .filter((m) => Number(m.nOk || 0) + Number(m.nFailed || 0) > 0)
      .sort((a, b) => Number(b.nOk || 0) - Number(a.nOk || 0))
      .map((m) => [[m.name], [count(m.nOk), 'num'], [count(m.nFailed), 'num'], [ms(m.meanMs || 0), 'num']]));
  }

  let timer = 0;
  let isGone = false;
  async function tick() {
    try {
      if (!document.hidden) take(await getJson('/v1/status'));
      app.setLive('on');
    } catch (error) {
      app.setLive('off', error);
    }
    if (!isGone) timer = setTimeout(tick, EVERY_MS);
  }
  tick();
  return {
    element,
    leave() {
      isGone = true;
      clearTimeout(timer);
      Object.values(charts).forEach((c) => c.close());
    },
  };
}
