/**
 * profile.js: what a profile says of whole runs: times, memory, counters of the processor.
 */

import { facts, h } from "collage/base/dom.js";
import { bytes, count, seconds, share } from "collage/base/format.js";

function counters(profile) {
  const rows = profile.counters ?? [];
  const read = rows
    .filter((row) => row.available && row.per_run !== null)
    .map((row) => `${row.name.replaceAll("_", " ")} ${count(Math.round(row.per_run))}`);
  const missing = rows.filter((row) => !row.available);
  const why = [...new Set(missing.map((row) => row.reason))].join("; ");
  return [
    ["Counters of a run", read.join(", ")],
    [
      "Not counted",
      missing.length > 0 ? `${missing.map((row) => row.name.replaceAll("_", " ")).join(", ")}: ${why}` : null,
    ],
  ];
}

/** Returns the facts of `profile`. */
export function aboutProfile(profile) {
  const { seconds: run, memory } = profile;
  return h(
    "div",
    { class: "chart", id: "real-runs" },
    h("h3", {}, "Real runs"),
    facts([
      [
        "A run",
        h(
          "span",
          {},
          h("strong", {}, seconds(run.p50)),
          `, 10th to 90th percentile ${seconds(run.p10)} to ${seconds(run.p90)}, ${count(profile.runs)} runs`,
        ),
      ],
      ["On", `${profile.machine}, ${count(profile.threads)} thread${profile.threads === 1 ? "" : "s"}`],
      ["First run", seconds(profile.first_run_seconds)],
      ["With cold caches", seconds(profile.cold_seconds)],
      ["Loading", seconds(profile.load_seconds)],
      ["Between steps", seconds(profile.between_steps_seconds)],
      ["Timing the steps cost", share(profile.overhead)],
      ["Memory of the process", memory && `${bytes(memory.peak_bytes)} at most, ${bytes(memory.resident_bytes)} now`],
      ...counters(profile),
    ]),
  );
}
