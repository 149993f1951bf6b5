// SPDX-License-Identifier: Apache-2.0
// What is painted flat over the 3D view: marks with a text, the brush, and which way the axes are.

// A mark: {points, text}, a point or a line.
export function paintMark(c, view, mark) {
  const at = mark.points.map((p) => view.shownCamera.project(p, view.aspect))
    .map((p) => p && [p[0] * view.clientWidth, p[1] * view.clientHeight]);
  c.lineWidth = 2;
  for (const [width, colour] of [[4.5, '#10151bcc'], [2, '#ffd54a']]) {
    c.lineWidth = width;
    c.strokeStyle = colour;
    if (at.length === 2 && at[0] && at[1]) {
      c.beginPath();
      c.moveTo(...at[0]);
      c.lineTo(...at[1]);
      c.stroke();
    }
    for (const p of at.filter(Boolean)) {
      c.beginPath();
      c.arc(p[0], p[1], 5, 0, 7);
      c.stroke();
    }
  }
  const last = at[at.length - 1];
  if (!mark.text || !last) return;
  const middle = at.length === 2 && at[0] ? [(at[0][0] + last[0]) / 2, (at[0][1] + last[1]) / 2] : last;
  c.font = '600 13px system-ui, sans-serif';
  const width = c.measureText(mark.text).width;
  c.fillStyle = '#10151be6';
  c.beginPath();
  c.roundRect(middle[0] - width / 2 - 8, middle[1] - 32, width + 16, 24, 7);
  c.fill();
  c.fillStyle = '#ffffff';
  c.textAlign = 'center';
  c.textBaseline = 'middle';
  c.fillText(mark.text, middle[0], middle[1] - 20);
  c.textAlign = 'left';
}

// A ball around the pointer while painting.
export function paintBrush(c, view) {
  if (!view.pointer || !(view.brushPixels > 0)) return;
  c.beginPath();
  c.arc(view.pointer[0] * view.clientWidth, view.pointer[1] * view.clientHeight, view.brushPixels, 0, 7);
  c.strokeStyle = '#ffffff';
  c.lineWidth = 3;
  c.stroke();
  c.strokeStyle = '#1b2028';
  c.lineWidth = 1.2;
  c.stroke();
}

// Which way x, y and z are.
export function paintAxes(c, view) {
  const [f, r, u] = view.shownCamera.axes;
  const x = view.clientWidth - 46;
  const y = 46;
  const along = (d, a) => d[0] * a[0] + d[1] * a[1] + d[2] * a[2];
  const axes = [['x', [1, 0, 0], '#ff6b5e'], ['y', [0, 1, 0], '#7bd36a'], ['z', [0, 0, 1], '#6aa8ff']]
    .sort((a, b) => along(f, b[1]) - along(f, a[1]));
  c.beginPath();
  c.arc(x, y, 34, 0, 7);
  c.fillStyle = '#10151b8c';
  c.fill();
  c.font = '600 11px system-ui, sans-serif';
  c.textAlign = 'center';
  c.textBaseline = 'middle';
  for (const [name, d, colour] of axes) {
    const end = [x + along(d, r) * 22, y - along(d, u) * 22];
    c.strokeStyle = colour;
    c.fillStyle = colour;
    c.lineWidth = 2.4;
    c.beginPath();
    c.moveTo(x, y);
    c.lineTo(...end);
    c.stroke();
    c.beginPath();
    c.arc(end[0], end[1], 6.5, 0, 7);
    c.fill();
    c.fillStyle = '#10151b';
    c.fillText(name, end[0], end[1] + 0.5);
  }
  c.textAlign = 'left';
}
