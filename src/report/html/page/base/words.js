/**
 * words.js: contenders, toolchains and reasons in words that need no manual.
 */
import * as format from "collage/base/format.js";

// Names of contenders (docs/concepts.md) and what they say; $1 is what the parentheses took.
const NAMES = [
  [/^collage-(\d+)$/, "no. $1"],
  [/^collage-coalesced$/, "neighbours merged"],
  [/^collage-evolved(?:-(\d+))?$/, "evolved $1"],
  [/^collage-for-(.+)$/, "of the form for $1"],
  [/^collage-standard$/, "in full precision"],
  [/^collage-bounded(?:-(\d+))?$/, "within the error bound $1"],
  [/^collage-primary$/, "of largest candidates"],
  [/^collage-(.+)$/, "of $1 only"],
];
const ALONE = [
  [/^partition_for_(.+)$/, "$1 alone, by its own passes"],
  [/^(.+)-search$/, "$1 alone, its best cover"],
  [/^(.+)-fuse-ops$/, "$1 alone, as FuseOps groups"],
  [/^(.+)$/, "$1 alone"],
];

function inWords(rules, name) {
  const [pattern, words] = rules.find(([candidate]) => candidate.test(name)) ?? [/$^/, name];
  return name.replace(pattern, words).trim();
}

/** How a contender's row is called: "Collage's mix of 2 toolchains", "dnnl alone". */
export function contenderName(contender) {
  const { name } = contender;
  if (contender.single) return inWords(ALONE, name);
  if (!name.startsWith("collage")) return name;
  const number = Object.keys(contender.partitions ?? {}).length;
  const mix = number > 1 ? `Collage's mix of ${number} toolchains` : "Collage's choice";
  return name === "collage" ? mix : `${mix}, ${inWords(NAMES, name)}`;
}

/** Whether a contender is one toolchain as it is, without a search. */
export function isPlainToolchain(contender, report) {
  const names = (report.toolchains ?? []).flatMap((toolchain) => [toolchain.name, ...(toolchain.takes_part_as ?? [])]);
  return Boolean(contender.single) && names.includes(contender.name);
}

/** "native 3 · dnnl 2". */
export function mix(partitions) {
  return Object.entries(partitions ?? {})
    .map(([name, number]) => `${name} ${number}`)
    .join(" · ");
}

/** How a cost is known: "measured", "at least, never measured". */
export function costState(cost) {
  if (!cost) return "no cost: not from a rule";
  return (
    {
      measured: "measured",
      bound: "at least; never measured",
      failed: "failed",
      estimated: "estimated",
    }[cost.state] ?? cost.state
  );
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
  if (alternative.at_least)
    return alternative.extra_seconds > 0 ? "cannot win: its bound costs more" : "could win: never measured";
  if (alternative.low_seconds > 0) return "slower";
  return alternative.extra_seconds < 0 ? "faster by these costs" : "within the error of the measurement";
}
