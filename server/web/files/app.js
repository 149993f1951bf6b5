// SPDX-License-Identifier: Apache-2.0
// The dashboard: which page is shown, who is logged in, messages, light or dark.
import { el } from './names.js';
import { logIn, logOut, whoAmI } from './session.js';
import { consolePage } from './console.js';
import { apiPage, overviewPage } from './lists.js';
import { statusPage } from './status.js';
import { scenePage } from './scene.js';
import { tutorialPage } from './tutorial.js';
import { volumePage } from './volume.js';

const main = document.getElementById('main');
const notes = document.getElementById('notes');
const live = document.getElementById('live');
const login = document.getElementById('login');
let leave = null; // ends the page that is shown
let shown = '';

export const app = { canWrite: false, note, setLive, fail };

function note(text, isBad = false) {
  const made = el('div', { class: isBad ? 'note bad' : 'note' }, text);
  notes.append(made);
  setTimeout(() => made.remove(), isBad ? 9000 : 4000);
  while (notes.children.length > 4) notes.firstChild.remove();
}

function setLive(state, error) {
  live.dataset.state = state;
  live.textContent = { on: 'live', off: 'not connected', rest: '' }[state] ?? state;
  if (error?.status === 401) askForToken();
}

// Says in words what went wrong.
function fail(error, what = '') {
  if (error?.name === 'AbortError') return;
  if (error?.status === 401) {
    askForToken();
    return;
  }
  const text = error instanceof TypeError ? 'the server does not answer' : error.message;
  note(what ? `${what}: ${text}` : text, true);
}

const pages = [
  [/^#\/status$/, 'status', () => statusPage(app)],
  [/^#\/api$/, 'api', () => apiPage(app)],
  [/^#\/tutorial$/, 'tutorial', () => tutorialPage(app)],
  [/^#\/console(?:\/([a-z0-9_]+))?$/, 'console', (m) => consolePage(app, m[1] || '')],
  [/^#\/volume\/([a-z0-9][a-z0-9._-]{0,62})$/, 'volume', (m) => volumePage(app, m[1])],
  [/^#\/scene\/([a-z0-9][a-z0-9._-]{0,62})(?:\?(.*))?$/, 'scene', (m) => scenePage(app, m[1], m[2] || '')],
  [/.*/, 'overview', () => overviewPage(app)],
];

function show() {
  const hash = location.hash || '#/';
  const [match, page, make] = pages
    .map(([pattern, name, made]) => [pattern.exec(hash), name, made])
    .find(([found]) => found);
  const hasName = page === 'scene' || page === 'volume';
  const key = hasName ? `${page}/${match[1]}` : page;
  if (key === shown) return;
  shown = key;
  leave?.();
  main.replaceChildren();
  main.scrollTop = 0;
  document.title = hasName ? `${match[1]} · voxeld` : 'voxeld';
  for (const link of document.querySelectorAll('.bar nav a')) {
    if (link.dataset.page === page) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  setLive('rest');
  const made = make(match);
  leave = made.leave;
  main.append(made.element);
}

function askForToken(message = '') {
  document.getElementById('login-error').textContent = message;
  if (!login.open) login.showModal();
  document.getElementById('token').focus();
}

function setPrincipal(who) {
  const scopes = who.scopes || [];
  app.canWrite = scopes.includes('write');
  document.getElementById('who').textContent =
    who.tokens ? `${who.name} (${scopes.join(', ')})` : `version ${who.version}`;
  document.getElementById('logout').hidden = !who.tokens;
}

// A login URL ends in #token=TOKEN: what is behind the # goes to no server and into no log. It leaves the
// address bar and the history at once.
function takeLinkToken() {
  const found = /^#token=(.+)$/.exec(location.hash);
  if (!found) return '';
  history.replaceState(null, '', '#/');
  try {
    return decodeURIComponent(found[1]);
  } catch {
    return found[1];
  }
}

// Who is logged in stays so: another site may hold a link to this page with a token of its own.
async function enter(token) {
  try {
    const who = await whoAmI();
    if (token && who.tokens) note(`You are logged in as ${who.name} already; log out to use the link's token.`);
    return who;
  } catch (error) {
    if (error.status !== 401 || !token) throw error;
  }
  return logIn(token);
}

async function start(token = takeLinkToken()) {
  try {
    setPrincipal(await enter(token));
  } catch (error) {
    if (error.status === 401) {
      askForToken(token ? 'The token of this link is not known here, or has ended.' : '');
      return;
    }
    fail(error, 'The session could not begin');
    setTimeout(start, 2000, token);
    return;
  }
  login.close();
  shown = '';
  show();
}

login.addEventListener('cancel', (event) => event.preventDefault());
login.querySelector('form').addEventListener('submit', async (event) => {
  event.preventDefault();
  const input = document.getElementById('token');
  try {
    setPrincipal(await logIn(input.value.trim()));
    input.value = '';
    login.close();
    shown = '';
    show();
  } catch (error) {
    askForToken(error.status === 401 ? 'This token is not known here.' : error.message);
  }
});

document.getElementById('logout').addEventListener('click', async () => {
  await logOut();
  location.hash = '#/';
  location.reload();
});

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  localStorage.setItem('voxeld-theme', theme);
  dispatchEvent(new CustomEvent('theme'));
}

function flipTheme() {
  setTheme(document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark');
}

const dark = matchMedia('(prefers-color-scheme: dark)');
document.documentElement.dataset.theme =
  localStorage.getItem('voxeld-theme') || (dark.matches ? 'dark' : 'light');
document.getElementById('theme').addEventListener('click', flipTheme);
addEventListener('keydown', (event) => {
  if (event.key === 't' && !event.ctrlKey && !event.metaKey && !event.altKey &&
      !event.target.closest('input:not([type="range"], [type="checkbox"]), select, textarea, dialog')) flipTheme();
});
addEventListener('hashchange', () => {
  const token = takeLinkToken();
  if (token) start(token);
  else show();
});
start();
