// SPDX-License-Identifier: Apache-2.0
// The server's public API: calls, streams of events, and who is logged in.

export class ApiError extends Error {
  constructor(status, body) {
    super(body?.message || `the server answered ${status}`);
    this.status = status;
    this.code = body?.code || '';
    this.field = body?.field || '';
  }
}

function randomName(prefix) {
  const random = crypto.getRandomValues(new Uint8Array(8));
  return prefix + [...random].map((b) => b.toString(16).padStart(2, '0')).join('');
}

// Who undoes what: of this tab, through reloads.
function tabName() {
  let name = sessionStorage.getItem('voxeld-client');
  if (!name) {
    name = randomName('web-');
    sessionStorage.setItem('voxeld-client', name);
  }
  return name;
}

export const clientId = tabName();

async function answer(response) {
  if (response.ok) return response;
  let body = null;
  try {
    body = await response.json();
  } catch {
    // Not ours: a proxy's page, say.
  }
  throw new ApiError(response.status, body);
}

export async function get(path, options = {}) {
  return answer(await fetch(path, { cache: 'no-store', ...options }));
}

export const getJson = async (path) => (await get(path)).json();

// Calls a method. What changes something takes effect once, however often it is sent: after a
// lost answer it is sent again with the same key.
export async function call(method, body, { changes = false, signal } = {}) {
  const headers = { 'Content-Type': 'application/json', 'X-Voxeld-Client-Id': clientId };
  if (changes) headers['Idempotency-Key'] = randomName('k-');
  const request = () => fetch(`/v1/${method}`, {
    method: 'POST', headers, body: JSON.stringify(body), signal,
  });
  let response;
  try {
    response = await request();
  } catch (error) {
    if (!changes || signal?.aborted) throw error;
    response = await request();
  }
  return (await answer(response)).json();
}

// Sends a file as the body of a method; what changes something takes effect once.
export async function sendFile(method, query, file, { changes = false } = {}) {
  const headers = { 'Content-Type': 'application/octet-stream', 'X-Voxeld-Client-Id': clientId };
  if (changes) headers['Idempotency-Key'] = randomName('k-');
  const path = `/v1/${method}?${new URLSearchParams(query)}`;
  return (await answer(await fetch(path, { method: 'POST', headers, body: file }))).json();
}

export async function whoAmI() {
  return getJson('/v1/session');
}

export async function logIn(token) {
  const response = await fetch('/v1/session', {
    method: 'POST', headers: { Authorization: `Bearer ${token}` },
  });
  return (await answer(response)).json();
}

export async function logOut() {
  await fetch('/v1/session', { method: 'POST' });
}

// Server-sent events by fetch, which unlike EventSource tells why it was refused. It begins anew
// after each end, from the last event on, and rests while the page is hidden: a browser has six
// connections to a server for all its tabs.
export class Stream {
  constructor(path, onEvent, onState = () => {}, headers = {}) {
    this.path = path;
    this.headers = headers;
    this.onEvent = onEvent;
    this.onState = onState;
    this.lastId = '';
    this.isClosed = false;
    this.visibility = () => (document.hidden ? this.abort?.abort() : this.wake?.());
    document.addEventListener('visibilitychange', this.visibility);
    this.run();
  }

  close() {
    this.isClosed = true;
    this.abort?.abort();
    this.wake?.();
    document.removeEventListener('visibilitychange', this.visibility);
  }

  pause(ms) {
    return new Promise((resolve) => {
      const timer = document.hidden ? 0 : setTimeout(resolve, ms);
      this.wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  async run() {
    let wait = 500;
    while (!this.isClosed) {
      try {
        this.abort = new AbortController();
        const headers = { ...this.headers, ...(this.lastId ? { 'Last-Event-ID': this.lastId } : {}) };
        const response = await get(this.path, { headers, signal: this.abort.signal });
        this.onState('on');
        wait = 500;
        await this.read(response.body.getReader());
      } catch (error) {
        if (this.isClosed) return;
        if (!this.abort.signal.aborted) this.onState('off', error);
        if (error.status === 404 || error.status === 401 || error.status === 403) return;
        if (error.status === 400) this.lastId = '';
      }
      if (!this.isClosed) await this.pause(wait);
      wait = Math.min(wait * 2, 8000);
    }
  }

  async read(reader) {
    const decoder = new TextDecoder();
    let text = '';
    for (;;) {
      const { done, value } = await reader.read();
      if (done || this.isClosed) return;
      text += decoder.decode(value, { stream: true });
      let end;
      while ((end = text.indexOf('\n\n')) >= 0) {
        this.take(text.slice(0, end));
        text = text.slice(end + 2);
      }
    }
  }

  take(block) {
    const fields = {};
    for (const line of block.split('\n')) {
      const colon = line.indexOf(': ');
      if (colon > 0) fields[line.slice(0, colon)] = line.slice(colon + 2);
    }
    if (fields.id) this.lastId = fields.id;
    if (fields.event && fields.event !== 'error') this.onEvent(fields.event, JSON.parse(fields.data));
  }
}
