// SPDX-License-Identifier: Apache-2.0
// Where the occupied voxels of a scene are, from cells that are coarse enough to be few.
import { add, scale } from './math.js';
import { numbers } from './names.js';

const MOST_CELLS = 60000;

// [low, high] in metres, or null where nothing is. `exportCells` calls the method.
export async function findBounds(exportCells, name, depth = 17) {
  for (let level = Math.max(depth - 5, 0); level <= depth; level++) {
    const reply = await exportCells({ name, level, limit: MOST_CELLS });
    const cells = numbers(reply.cells);
    if (cells.length === 0) return null;
    if (Number(reply.nCells) * 3 > cells.length) continue;
    const low = [Infinity, Infinity, Infinity];
    const high = [-Infinity, -Infinity, -Infinity];
    for (let i = 0; i < cells.length; i++) {
      low[i % 3] = Math.min(low[i % 3], cells[i]);
      high[i % 3] = Math.max(high[i % 3], cells[i] + 1);
    }
    const o = [reply.origin?.x || 0, reply.origin?.y || 0, reply.origin?.z || 0];
    return [low, high].map((v) => add(o, scale(v, reply.cellSizeM)));
  }
  return null;
}
