/**
 * format.js: numbers as text with units, as the command line prints them. What is not known is "?", never 0.
 */

const UNKNOWN = "?";

function isKnown(value) {
  return typeof value === "number" && Number.isFinite(value);
}

/** "81.8 µs", "8.71 ms", "12.3 s". */
export function seconds(value) {
  if (!isKnown(value)) return UNKNOWN;
  const us = value * 1e6;
  if (us < 1) return `${us.toFixed(3)} µs`;
  if (us < 1e3) return `${us.toFixed(us < 10 ? 2 : us < 100 ? 1 : 0)} µs`;
  const ms = us / 1e3;
  if (ms < 1e4) return `${ms.toFixed(ms < 10 ? 3 : ms < 100 ? 2 : 1)} ms`;
  return `${value.toFixed(1)} s`;
}

/** A label of an axis: "10 ms", "0". */
export function axisSeconds(value) {
  return value === 0
    ? "0"
    : seconds(value)
        .replace(/(\.\d*?)0+ /, "$1 ")
        .replace(". ", " ");
}

/** "+1.20 ms", "−3.0 µs", "0". */
export function difference(value) {
  if (!isKnown(value)) return UNKNOWN;
  if (Math.abs(value) < 5e-10) return "0"; // less than is shown
  return (value < 0 ? "−" : "+") + seconds(Math.abs(value));
}

/** "437 MB"; a kB has 1000 bytes. */
export function bytes(value) {
  if (!isKnown(value)) return UNKNOWN;
  const units = ["B", "kB", "MB", "GB"];
  let unit = 0;
  while (value >= 1000 && unit < 3) {
    value /= 1000;
    ++unit;
  }
  return `${value.toFixed(unit === 0 || value >= 100 ? 0 : 1)} ${units[unit]}`;
}

/** "12.5 %" of 0.125. */
export function share(value) {
  return isKnown(value) ? `${(100 * value).toFixed(1)} %` : UNKNOWN;
}

/** "1.17×". */
export function ratio(value) {
  return isKnown(value) ? `${value.toFixed(2)}×` : UNKNOWN;
}

/** "1 234 567": digits in groups of three. */
export function count(value) {
  return isKnown(value) ? String(value).replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f") : UNKNOWN;
}

/** "3 nodes", "1 node". */
export function plural(value, noun) {
  return `${count(value)} ${noun}${value === 1 ? "" : "s"}`;
}

/** "117 GFLOP/s" of 117e9 with the unit "FLOP/s". */
export function rate(value, unit) {
  if (!isKnown(value)) return UNKNOWN;
  const prefixes = ["", "k", "M", "G", "T"];
  let step = 0;
  while (value >= 1000 && step < prefixes.length - 1) {
    value /= 1000;
    ++step;
  }
  return `${value.toPrecision(3).replace(/e\+\d+$/, "")} ${prefixes[step]}${unit}`;
}

/** "0.0342", "1.2e-7": three digits of any number. */
export function number(value) {
  if (!isKnown(value)) return UNKNOWN;
  const text = Number(value.toPrecision(3)).toString();
  return text.replace("-", "−");
}

/** "1.2e-6": an error relative to the largest result. */
export function error(value) {
  return isKnown(value) ? value.toExponential(1) : UNKNOWN;
}

/** The operators of a partition without what nearly all of their names begin with: "conv2d + relu". */
export function operators(label) {
  return label
    .split("+")
    .map((name) => name.replace(/^(nn|qnn|image|vision)\./, ""))
    .join(" + ");
}

/** The first `most` characters, and a mark if there were more. */
export function shorten(text, most) {
  return text.length <= most ? text : `${text.slice(0, Math.max(1, most - 1))}…`;
}
