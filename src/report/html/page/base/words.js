/**
 * words.js: contenders, toolchains and reasons in words that need no manual.
 */
import * as format from "collage/base/format.js";

/** How a contender's row is called: "Collage's mix of 2 toolchains", "dnnl alone". */
export function contenderName(contender) {
  if (contender.name === "collage-bounded") return "Collage's mix within the error bound";
  if (/^collage(-\d+)?$/.test(contender.name)) {
    const toolchains = Object.keys(contender.partitions && !Array.isArray(contender.partitions) ? contender.partitions : {}).length;
    const mix = toolchains > 1 ? `mix of ${toolchains} toolchains` : "choice";
    return contender.name === "collage" ? `Collage's ${mix}` : `Collage's ${mix}, no. ${contender.name.slice("collage-".length)}`;
  }
  return contender.single ? `${contender.name} alone` : contender.name;
}

/** "native 3 · dnnl 2". */
export function mix(partitions) {
  return Object.entries(partitions ?? {}).map(([name, number]) => `${name} ${number}`).join(" · ");
}

/** How a cost is known: "measured", "at least, never measured". */
export function costState(cost) {
  if (!cost) return "no cost: not from a rule";
  return {
    measured: "measured", bound: "at least; never measured", failed: "failed", estimated: "estimated",
  }[cost.state] ?? cost.state;
}

/** The cost of a candidate with how it is known: "≥ 7.5 µs", "81.8 µs ± 0.4 µs". */
export function costText(cost) {
  if (!cost) return "?";
  if (cost.state === "failed") return "failed";
  const text = (cost.state === "bound" ? "≥ " : "") + format.seconds(cost.seconds);
  return cost.half_width ? `${text} ± ${format.seconds(cost.half_width)}` : text;
}

/** "+12.0 µs (11.5 to 12.5)"; "at least +3.1 µs". */
export function extraText(alternative) {
  const extra = format.difference(alternative.extra_seconds);
  if (alternative.at_least) return `at least ${extra}`;
  const { low_seconds: low, high_seconds: high } = alternative;
  if (typeof low !== "number" || typeof high !== "number") return extra;
  return `${extra} (${format.difference(low)} to ${format.difference(high)})`;
}

/** What an alternative's interval says of the choice. */
export function judgement(alternative) {
  if (alternative.at_least) return alternative.extra_seconds > 0 ? "cannot win: its bound costs more" : "could win: never measured";
  if (alternative.low_seconds > 0) return "slower";
  return alternative.extra_seconds < 0 ? "faster by these costs" : "within the error of the measurement";
}
