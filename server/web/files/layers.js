// SPDX-License-Identifier: Apache-2.0
// What is drawn over a picture in 3D: points, lines, surfaces and flat pictures, each a layer of a
// name. One interface for all that wants to be seen: costmaps, slices, changes, scans, boxes, poses,
// surfaces of volumes.
//
// A layer: {kind, origin, positions, colours, ...}. `origin` is a place in metres, `positions` a
// Float32Array of metres from it, `colours` a Uint8Array of red, green, blue, alpha for each.
//   points   size: metres of a point's side; least: pixels
//   lines    two positions a line
//   mesh     normals: Float32Array; three positions a triangle, or indices: Uint32Array
//   image    corner, u, v: a place and two edges in metres; pixels: {width, height, data}, whose first
//            row lies at the corner
// `hidden` is how much is seen of what lies behind the scene: 0 nothing, 1 all.
import { sub } from './math.js';

const VERTEX = `#version 300 es
in vec3 position;
in vec4 colour;
in vec3 normal;
in vec2 place;
uniform vec3 offset, right, up, forward;
uniform vec4 lens; // 1 / half width, 1 / half height, near, far, at distance 1
uniform vec2 point; // pixels of a point at distance 1, and at least
out vec4 shade;
out vec2 at;
out float away;
void main() {
  vec3 p = position + offset;
  away = dot(p, forward);
  gl_Position = vec4(dot(p, right) * lens.x, dot(p, up) * lens.y,
    (away * (lens.w + lens.z) - 2.0 * lens.w * lens.z) / (lens.w - lens.z), away);
  gl_PointSize = clamp(point.x / max(away, 1e-6), point.y, 255.0);
  float light = dot(normal, normal) > 0.0
    ? 0.58 + 0.34 * abs(dot(normal, forward)) + 0.08 * normal.z : 1.0;
  shade = vec4(colour.rgb * light, colour.a);
  at = place;
}`;

const FRAGMENT = `#version 300 es
precision highp float;
in vec4 shade;
in vec2 at;
in float away;
uniform sampler2D depths;
uniform sampler2D picture;
uniform vec2 size;
uniform float isPoint;
uniform vec4 how; // whether depths are known, what is seen of hidden parts, alpha, a picture is shown
out vec4 result;
void main() {
  vec4 c = how.w > 0.0 ? texture(picture, at) : shade;
  c.a *= how.z;
  vec2 side = abs(gl_PointCoord - 0.5);
  if (isPoint > 3.0 && max(side.x, side.y) > 0.5 - 1.0 / isPoint) c.rgb *= 0.8;
  if (how.x > 0.0) {
    vec2 screen = gl_FragCoord.xy / size;
    float before = texture(depths, vec2(screen.x, 1.0 - screen.y)).r;
    if (away > before * 1.004 + how.x) c.a *= how.y;
  }
  if (c.a < 0.004) discard;
  result = vec4(c.rgb * c.a, c.a);
}`;

function compile(gl, kind, source) {
  const shader = gl.createShader(kind);
  gl.shaderSource(shader, source);
  gl.compileShader(shader);
  if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) throw new Error(gl.getShaderInfoLog(shader));
  return shader;
}

const ATTRIBUTES = { position: 3, colour: 4, normal: 3, place: 2 };

// The edges of a box as a layer's positions.
export function boxEdges(low, high) {
  const corner = (i) => [i & 4 ? high[0] : low[0], i & 2 ? high[1] : low[1], i & 1 ? high[2] : low[2]];
  const edges = [];
  for (let i = 0; i < 8; i++) {
    for (const bit of [1, 2, 4]) if (!(i & bit)) edges.push(...corner(i), ...corner(i | bit));
  }
  return edges;
}

// The same colour for n positions.
export function sameColour(n, rgba) {
  const colours = new Uint8Array(4 * n);
  for (let i = 0; i < n; i++) colours.set(rgba, 4 * i);
  return colours;
}

export class Layers {
  constructor(canvas) {
    this.canvas = canvas;
    this.layers = new Map();
    this.depth = null;
    this.gl = null;
    canvas.addEventListener('webglcontextlost', (event) => {
      event.preventDefault();
      this.gl = null;
    });
  }

  get isEmpty() {
    return this.layers.size === 0;
  }

  // What a browser without WebGL2 has is a picture without layers.
  begin() {
    if (this.gl || this.hasFailed) return this.gl;
    const gl = this.canvas.getContext('webgl2', { premultipliedAlpha: true, antialias: true });
    if (!gl) {
      this.hasFailed = true;
      return null;
    }
    const program = gl.createProgram();
    gl.attachShader(program, compile(gl, gl.VERTEX_SHADER, VERTEX));
    gl.attachShader(program, compile(gl, gl.FRAGMENT_SHADER, FRAGMENT));
    Object.keys(ATTRIBUTES).forEach((name, i) => gl.bindAttribLocation(program, i, name));
    gl.linkProgram(program);
    if (!gl.getProgramParameter(program, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(program));
    gl.useProgram(program);
    this.uniform = (name) => gl.getUniformLocation(program, name);
    gl.uniform1i(this.uniform('depths'), 0);
    gl.uniform1i(this.uniform('picture'), 1);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    gl.enable(gl.DEPTH_TEST);
    gl.depthFunc(gl.LEQUAL);
    this.depthTexture = gl.createTexture();
    this.gl = gl;
    for (const layer of this.layers.values()) layer.made = null;
    return gl;
  }

  // Replaces the layer of a name; null takes it away.
  set(name, layer) {
    const old = this.layers.get(name);
    if (old?.made && this.gl) this.free(old.made);
    if (layer) this.layers.set(name, { hidden: 0.15, alpha: 1, ...layer, made: null });
    else this.layers.delete(name);
  }

  free(made) {
    for (const buffer of made.buffers) this.gl.deleteBuffer(buffer);
    if (made.texture) this.gl.deleteTexture(made.texture);
    this.gl.deleteVertexArray(made.vao);
  }

  // The scene's depths as it is shown: a Float32Array of metres along the view, or null.
  setDepth(depth) {
    this.depth = depth;
    if (!depth || !this.begin()) return;
    const gl = this.gl;
    gl.activeTexture(gl.TEXTURE0);
    gl.bindTexture(gl.TEXTURE_2D, this.depthTexture);
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.R32F, depth.width, depth.height, 0, gl.RED, gl.FLOAT, depth.data);
    for (const [key, value] of [[gl.TEXTURE_MIN_FILTER, gl.NEAREST], [gl.TEXTURE_MAG_FILTER, gl.NEAREST],
      [gl.TEXTURE_WRAP_S, gl.CLAMP_TO_EDGE], [gl.TEXTURE_WRAP_T, gl.CLAMP_TO_EDGE]]) {
      gl.texParameteri(gl.TEXTURE_2D, key, value);
    }
  }

  make(layer) {
    const gl = this.gl;
    const made = { vao: gl.createVertexArray(), buffers: [], n: 0, texture: null };
    gl.bindVertexArray(made.vao);
    const put = (name, data, kind, isNormalized) => {
      const at = Object.keys(ATTRIBUTES).indexOf(name);
      const buffer = gl.createBuffer();
      gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
      gl.bufferData(gl.ARRAY_BUFFER, data, gl.STATIC_DRAW);
      gl.enableVertexAttribArray(at);
      gl.vertexAttribPointer(at, ATTRIBUTES[name], kind, isNormalized, 0, 0);
      made.buffers.push(buffer);
    };
    let { positions } = layer;
    if (layer.kind === 'image') {
      const [u, v] = [layer.u, layer.v];
      positions = new Float32Array([0, 0, 0, ...u, ...v, ...u.map((x, i) => x + v[i])]);
      put('place', new Float32Array([0, 0, 1, 0, 0, 1, 1, 1]), gl.FLOAT, false);
      made.texture = gl.createTexture();
      gl.activeTexture(gl.TEXTURE1);
      gl.bindTexture(gl.TEXTURE_2D, made.texture);
      gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA, layer.pixels.width, layer.pixels.height, 0, gl.RGBA,
        gl.UNSIGNED_BYTE, layer.pixels.data);
      for (const [key, value] of [[gl.TEXTURE_MIN_FILTER, gl.LINEAR], [gl.TEXTURE_MAG_FILTER, gl.NEAREST],
        [gl.TEXTURE_WRAP_S, gl.CLAMP_TO_EDGE], [gl.TEXTURE_WRAP_T, gl.CLAMP_TO_EDGE]]) {
        gl.texParameteri(gl.TEXTURE_2D, key, value);
      }
    }
    put('position', positions, gl.FLOAT, false);
    if (layer.colours) put('colour', layer.colours, gl.UNSIGNED_BYTE, true);
    if (layer.normals) put('normal', layer.normals, gl.FLOAT, false);
    made.n = positions.length / 3;
    if (layer.indices) {
      const buffer = gl.createBuffer();
      gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, buffer);
      gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, layer.indices, gl.STATIC_DRAW);
      made.buffers.push(buffer);
      made.n = layer.indices.length;
    }
    gl.bindVertexArray(null);
    layer.made = made;
  }

  draw(camera, width, height, ratio) {
    if (this.isEmpty && !this.gl) return;
    const gl = this.begin();
    if (!gl) return;
    const w = Math.max(1, Math.round(width * ratio));
    const h = Math.max(1, Math.round(height * ratio));
    if (this.canvas.width !== w) this.canvas.width = w;
    if (this.canvas.height !== h) this.canvas.height = h;
    gl.viewport(0, 0, w, h);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    const [forward, right, up] = camera.axes;
    const t = Math.tan(camera.fov * Math.PI / 360);
    gl.uniform3fv(this.uniform('forward'), forward);
    gl.uniform3fv(this.uniform('right'), right);
    gl.uniform3fv(this.uniform('up'), up);
    gl.uniform4f(this.uniform('lens'), 1 / (t * w / h), 1 / t, camera.distance * 0.002, camera.distance * 500);
    gl.uniform2f(this.uniform('size'), w, h);
    gl.activeTexture(gl.TEXTURE0);
    gl.bindTexture(gl.TEXTURE_2D, this.depthTexture);
    const order = { mesh: 0, points: 1, image: 2, lines: 3 };
    for (const layer of [...this.layers.values()].sort((a, b) => order[a.kind] - order[b.kind])) {
      this.drawLayer(layer, camera, h / (2 * t), ratio);
    }
  }

  drawLayer(layer, camera, pixelsAtOne, ratio) {
    const gl = this.gl;
    if (!layer.made) this.make(layer);
    const corner = layer.kind === 'image' ? layer.corner : layer.origin;
    gl.uniform3fv(this.uniform('offset'), sub(corner, camera.eye));
    gl.uniform2f(this.uniform('point'), (layer.size || 0) * pixelsAtOne, (layer.least ?? 2) * ratio);
    gl.uniform1f(this.uniform('isPoint'), layer.kind === 'points' ? (layer.size || 0) * pixelsAtOne / camera.distance : 0);
    gl.uniform4f(this.uniform('how'), this.depth ? (layer.size || 0) + camera.distance * 0.002 : 0, layer.hidden, layer.alpha, layer.kind === 'image' ? 1 : 0);
    if (layer.made.texture) {
      gl.activeTexture(gl.TEXTURE1);
      gl.bindTexture(gl.TEXTURE_2D, layer.made.texture);
    }
    // What is seen through does not hide what is behind it.
    gl.depthMask(layer.kind === 'mesh' || layer.kind === 'points');
    gl.bindVertexArray(layer.made.vao);
    gl.vertexAttrib3f(2, 0, 0, 0);
    const what = { points: gl.POINTS, lines: gl.LINES, mesh: gl.TRIANGLES, image: gl.TRIANGLE_STRIP }[layer.kind];
    if (layer.indices) gl.drawElements(what, layer.made.n, gl.UNSIGNED_INT, 0);
    else gl.drawArrays(what, 0, layer.made.n);
    gl.bindVertexArray(null);
    gl.depthMask(true);
  }
}
