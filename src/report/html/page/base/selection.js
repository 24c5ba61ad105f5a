/**
 * selection.js: which partition or node the reader looks at. Pictures and tables tell it what was pressed and hear of all
 * changes, so they show the same one.
 */

const listeners = [];
let current = null;

/** The selection: null, or {graph, partition, node} with `node` an index or null. */
export function selected() {
  return current;
}

/** Selects a partition, or a node of it. Listeners that made the change may be told by `origin`. */
export function select(next, origin = null) {
  current = next;
  for (const listener of listeners) listener(current, origin);
}

/** Has `listener` called with the selection and its origin whenever it changes. */
export function onSelect(listener) {
  listeners.push(listener);
}
