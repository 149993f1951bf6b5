// SPDX-License-Identifier: Apache-2.0
// A console for the API: a method, its request as JSON with completion from the OpenAPI document, and
// the reply. What was typed last for a method is kept in this browser.
import { clamp } from './math.js';
import { el, ms } from './names.js';
import { clientId, getJson } from './session.js';

const MOST_SHOWN = 60000; // characters of a reply
const CHOICES_PX = 240; // of the list of completions, where there is room

// The members of a JSON object that is being typed, up to where the cursor is: names of the enclosing
// members, whether a name or a value is being typed, and its beginning.
export function place(text) {
  const stack = []; // of {isArray, key, wantsKey}
  let string = null;
  let last = '';
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    const top = stack[stack.length - 1];
    if (string !== null) {
      if (c === '\\') string += text[++i] ?? '';
      else if (c === '"') {
        last = string;
        if (top && !top.isArray && top.wantsKey) top.key = string;
        string = null;
      } else string += c;
    } else if (c === '"') string = '';
    else if (c === '{' || c === '[') stack.push({ isArray: c === '[', key: '', wantsKey: c === '{' });
    else if (c === '}' || c === ']') stack.pop();
    else if (c === ':' && top) top.wantsKey = false;
    else if (c === ',' && top) top.wantsKey = !top.isArray;
  }
  const top = stack[stack.length - 1];
  const path = stack.slice(0, -1).filter((s) => !s.isArray).map((s) => s.key);
  return {
    path, isKey: Boolean(top && !top.isArray && top.wantsKey), key: top && !top.isArray ? top.key : stack.filter((s) => !s.isArray).pop()?.key || '',
    typed: string, last,
  };
}

export class Api {
  constructor(document) {
    this.document = document;
    this.methods = new Map();
    for (const [path, verbs] of Object.entries(document.paths)) {
      const schema = verbs.post?.requestBody?.content?.['application/json'];
      if (schema) this.methods.set(path.replace('/v1/', ''), { summary: verbs.post.summary || '', content: schema });
    }
  }

  resolve(schema) {
    let found = schema;
    for (let i = 0; i < 8 && found; i++) {
      if (found.$ref) found = this.document.components.schemas[found.$ref.split('/').pop()];
      else if (found.allOf) [found] = found.allOf;
      else if (found.type === 'array') found = found.items;
      else break;
    }
    return found || {};
  }

  // The message that the members of a path lead to.
  message(method, path) {
    let schema = this.resolve(this.methods.get(method)?.content.schema);
    for (const key of path) schema = this.resolve(schema.properties?.[key]);
    return schema;
  }

  example(method) {
    const content = this.methods.get(method)?.content || {};
    const example = content.example ?? Object.values(content.examples || {})[0]?.value ?? {};
    return JSON.stringify(example, null, 2);
  }

  // What may stand at the end of a text: [{text, help, insert}].
  complete(method, text) {
    const at = place(text);
    const schema = this.message(method, at.path);
    const isMatch = (name) => name.toLowerCase().includes((at.typed || '').toLowerCase());
    if (at.isKey) {
      return Object.entries(schema.properties || {}).filter(([name]) => isMatch(name))
        .map(([name, p]) => ({ text: name, help: p.description || this.resolve(p).description || '', insert: `${name}": ` }));
    }
    const value = this.resolve(schema.properties?.[at.key]);
    const values = value.enum || (value.type === 'boolean' ? [true, false] : []);
    return values.filter((v) => isMatch(String(v)))
      .map((v) => ({ text: String(v), help: '', insert: typeof v === 'string' ? `${v}"` : String(v), isBare: typeof v !== 'string' }));
  }
}

// Runs a method; resolves to {status, text, ms}.
export async function run(method, body) {
  const began = performance.now();
  const headers = { 'Content-Type': 'application/json', 'X-Voxeld-Client-Id': clientId, 'Idempotency-Key': crypto.randomUUID() };
  const response = await fetch(`/v1/${method}`, { method: 'POST', headers, body });
  return { status: response.status, text: await response.text(), ms: performance.now() - began };
}

export function pretty(text) {
  try {
    const whole = JSON.stringify(JSON.parse(text), (_, v) => (typeof v === 'string' && v.length > 400 ? `${v.slice(0, 60)}... (${v.length} characters)` : v), 2);
    return whole.length > MOST_SHOWN ? `${whole.slice(0, MOST_SHOWN)}\n...` : whole;
  } catch {
    return text;
  }
}

class Console {
  constructor(app, asked) {
    this.app = app;
    this.method = el('input', { type: 'search', id: 'console-method', list: 'console-methods', spellcheck: 'false', autocomplete: 'off', oninput: () => this.choose() });
    this.list = el('datalist', { id: 'console-methods' });
    this.summary = el('span', { class: 'dim' });
    this.body = el('textarea', {
      id: 'console-body', spellcheck: 'false', autocapitalize: 'off', rows: '14',
      'aria-autocomplete': 'list', 'aria-controls': 'console-choices',
      oninput: () => this.suggest(), onkeydown: (event) => this.key(event), onblur: () => setTimeout(() => this.hide(), 150), onclick: () => this.hide(),
    });
    this.choices = el('ul', { id: 'console-choices', class: 'choices', role: 'listbox', 'aria-label': 'Completions', hidden: true });
    this.result = el('pre', { class: 'reply', tabindex: '0', 'aria-label': 'Reply' });
    this.status = el('span', { class: 'dim', role: 'status' });
    this.element = el('div', { class: 'page' },
      el('div', { class: 'title' }, el('h1', {}, 'Console'), el('span', { class: 'dim' }, 'Ctrl + Enter runs, Ctrl + Space completes.')),
      el('section', { class: 'panel console' },
        el('div', { class: 'row' }, el('label', { for: 'console-method' }, 'Method'), this.method, this.list, this.summary),
        el('label', { for: 'console-body' }, 'Request'),
        el('div', { class: 'editor' }, this.body, this.choices),
        el('div', { class: 'row' }, el('button', { type: 'button', class: 'primary', onclick: () => this.run() }, 'Run'),
          el('button', { type: 'button', onclick: () => this.useExample() }, 'Example'), this.status),
        this.result));
    this.asked = asked;
    this.load();
  }

  async load() {
    try {
      this.api = new Api(await getJson('/v1/openapi.json'));
      this.list.replaceChildren(...[...this.api.methods].map(([name, m]) => el('option', { value: name }, m.summary)));
      this.method.value = this.api.methods.has(this.asked) ? this.asked : 'scene_list';
      this.choose();
    } catch (error) {
      this.app.fail(error);
    }
  }

  choose() {
    const method = this.api?.methods.get(this.method.value);
    if (!method) return;
    this.summary.textContent = method.summary;
    this.body.value = localStorage.getItem(`voxeld-console-${this.method.value}`) || this.api.example(this.method.value);
    history.replaceState(null, '', `#/console/${this.method.value}`);
  }

  useExample() {
    this.body.value = this.api.example(this.method.value);
  }

  // --- completion -----------------------------------------------------------------------------

  suggest(isAsked = false) {
    const text = this.body.value.slice(0, this.body.selectionStart);
    const { typed } = place(text);
    this.found = this.api && (typed !== null || isAsked) ? this.api.complete(this.method.value, text).slice(0, 40) : [];
    this.chosen = 0;
    this.choices.replaceChildren(...this.found.map((f, i) => el('li', {
      role: 'option', id: `choice-${i}`, 'aria-selected': String(i === 0), onpointerdown: (event) => {
        event.preventDefault();
        this.take(i);
      },
    }, el('b', {}, f.text), el('span', { class: 'dim' }, f.help.split('\n')[0].slice(0, 110)))));
    this.choices.hidden = this.found.length === 0;
    if (this.found.length) this.dock();
    this.mark();
  }

  // Under the line that is typed, or over it where there is more room: all of it within the window.
  dock() {
    const box = this.body.getBoundingClientRect();
    const style = getComputedStyle(this.body);
    const line = parseFloat(style.lineHeight);
    const row = this.body.value.slice(0, this.body.selectionStart).split('\n').length - 1;
    const y = clamp(parseFloat(style.paddingTop) + row * line - this.body.scrollTop, 0, box.height - line);
    const under = innerHeight - box.top - y - line;
    const over = box.top + y - (document.querySelector('.bar')?.getBoundingClientRect().bottom || 0);
    this.choices.style.maxHeight = `${CHOICES_PX}px`;
    const isUnder = under - 12 >= this.choices.offsetHeight || under >= over;
    this.choices.style.maxHeight = `${Math.max(Math.min(CHOICES_PX, (isUnder ? under : over) - 12), 3 * line)}px`;
    this.choices.style.top = isUnder ? `${y + line + 4}px` : 'auto';
    this.choices.style.bottom = isUnder ? 'auto' : `${this.choices.offsetParent.getBoundingClientRect().bottom - box.top - y + 4}px`;
  }

  mark() {
    [...this.choices.children].forEach((c, i) => c.setAttribute('aria-selected', String(i === this.chosen)));
    this.choices.children[this.chosen]?.scrollIntoView({ block: 'nearest' });
    this.body.setAttribute('aria-activedescendant', this.found.length ? `choice-${this.chosen}` : '');
  }

  hide() {
    this.choices.hidden = true;
    this.found = [];
  }

  take(i) {
    const at = this.body.selectionStart;
    const { typed } = place(this.body.value.slice(0, at));
    const choice = this.found[i];
    const begin = typed === null ? at : at - typed.length - (choice.isBare ? 1 : 0);
    let insert = typed === null && !choice.isBare ? `"${choice.insert}` : choice.insert;
    let end = at;
    if (this.body.value[end] === '"') end++;
    if (insert.endsWith(': ') && /^\s*:/.test(this.body.value.slice(end))) insert = insert.slice(0, -2);
    this.body.setRangeText(insert, begin, end, 'end');
    this.hide();
  }

  key(event) {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      this.run();
      return;
    }
    if (event.key === ' ' && event.ctrlKey) {
      event.preventDefault();
      this.suggest(true);
      return;
    }
    if (!this.found?.length) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) this.chosen = (this.chosen + step + this.found.length) % this.found.length;
    else if (event.key === 'Enter' || event.key === 'Tab') this.take(this.chosen);
    else if (event.key === 'Escape') this.hide();
    else return;
    event.preventDefault();
    this.mark();
  }

  // --- running --------------------------------------------------------------------------------

  async run() {
    this.hide();
    localStorage.setItem(`voxeld-console-${this.method.value}`, this.body.value);
    this.status.textContent = 'running';
    try {
      const reply = await run(this.method.value, this.body.value);
      this.status.textContent = `${reply.status}, ${ms(reply.ms)}, ${reply.text.length.toLocaleString('en')} characters`;
      this.result.textContent = pretty(reply.text);
      this.result.classList.toggle('bad', reply.status >= 400);
      if (reply.status === 401) this.app.fail(Object.assign(new Error('no token'), { status: 401 }));
    } catch (error) {
      this.status.textContent = '';
      this.app.fail(error);
    }
  }
}

export function consolePage(app, asked) {
  const made = new Console(app, asked);
  return { element: made.element, leave() {} };
}
