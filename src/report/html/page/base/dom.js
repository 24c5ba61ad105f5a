/**
 * dom.js: makes elements of HTML and SVG. Text is always set as text, so names from a model never become markup.
 */

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(
    ...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false),
  );
  return element;
}

/**
 * Returns an HTML element. An attribute that begins with "on" is an event's listener; null, undefined and false leave an
 * attribute or a child out. Children are elements, texts, or lists of these.
 */
export function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** Returns an SVG element, otherwise as `h`. */
export function s(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** Puts `children` in place of all that `element` holds. */
export function refill(element, ...children) {
  element.replaceChildren();
  return fill(element, {}, children);
}

/** Returns a square in the colour of class `colour`, which text beside it explains. */
export function swatch(colour) {
  return h("span", { class: `swatch ${colour}`, "aria-hidden": "true" });
}

/** Returns a table. A column is {head, cell: row → content, number: align right}. */
export function table(columns, rows, attributes = {}) {
  const head = columns.map((column) => h("th", { scope: "col", class: column.number && "number" }, column.head));
  const body = rows.map((row) =>
    h(
      "tr",
      {},
      columns.map((column) => h("td", { class: column.number && "number" }, column.cell(row))),
    ),
  );
  return h("table", attributes, h("thead", {}, h("tr", {}, head)), h("tbody", {}, body));
}

/** Returns a list of terms with their values; pairs whose value is null are left out. */
export function facts(pairs) {
  const known = pairs.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return h(
    "dl",
    { class: "facts" },
    known.map(([term, value]) => [h("dt", {}, term), h("dd", {}, value)]),
  );
}
