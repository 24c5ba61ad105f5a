/**
 * tints.js: what the colour of a box may say in place of its toolchain.
 */
import * as format from "collage/base/format.js";

const NONE = "var(--muted)";
const shade = (share) => `color-mix(in oklab, var(--t8) ${(100 * share).toFixed(1)}%, var(--t7))`;

/** The ways to colour: `name`, what a cold and a hot colour mean, and the CSS colour of a partition (null: its toolchain's). */
export const TINTS = [
  { name: "Toolchain", tint: () => null },
  {
    name: "Share of the time",
    cold: "no time",
    hot: (graph) => format.share(Math.max(...graph.partitions.map((partition) => partition.share ?? 0))),
    tint: (partition, graph) => {
      graph.greatestShare ??= Math.max(...graph.partitions.map((row) => row.share ?? 0)) || 1;
      return partition.share === null ? NONE : shade(Math.sqrt(partition.share / graph.greatestShare));
    },
  },
  {
    name: "Distance from the least time",
    cold: "the least time on the machine",
    hot: () => "10 times that or more",
    tint: ({ cost, seconds }) =>
      cost?.least_seconds && seconds ? shade(Math.min(1, Math.max(0, Math.log10(seconds / cost.least_seconds)))) : NONE,
  },
];
