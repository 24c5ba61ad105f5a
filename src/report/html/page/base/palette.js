/**
 * palette.js: one colour for each toolchain, the same in every picture. Colours are classes t0, t1, …, whose values
 * depend on the theme (colours.css). What is not a toolchain's has the class `between`.
 */

const NUM_COLOURS = 10;
const places = new Map();

/** Gives colours to toolchains by their names, the first ones to those that matter most. */
export function assignColours(names) {
  for (const name of names) if (!places.has(name)) places.set(name, places.size);
}

/** The class of toolchain `name`. More toolchains than colours begin anew. */
export function colourOf(name) {
  assignColours([name]);
  return `t${places.get(name) % NUM_COLOURS}`;
}

/** The value that the colour `name` ("t0", "muted") has in the theme of now, as canvases take it. */
export function resolved(name) {
  const probe = document.createElement("span");
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}
