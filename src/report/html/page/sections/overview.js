/**
 * overview.js: the verdict, how far from the best it can be, and the facts of the executable.
 */

import { h, swatch } from "collage/base/dom.js";
import { bytes, count, error, plural, ratio, seconds, share } from "collage/base/format.js";
import { colourOf } from "collage/base/palette.js";
import { contenderName, isPlainToolchain, mix } from "collage/base/words.js";

/** The contenders of all sorts that ran, in the order of the report. */
function ran(report) {
  return (report.play_off ?? []).filter((contender) => !contender.failure && contender.p50_seconds);
}

/** "1.29× as fast as dnnl alone", or that the winner is one toolchain alone. */
function comparison(report) {
  const winner = ran(report).find((contender) => contender.name === report.winner);
  const others = ran(report).filter(
    (contender) => isPlainToolchain(contender, report) && contender.name !== report.winner,
  );
  if (!winner || others.length === 0) return "";
  const parts = others.map((contender) => {
    const gain = contender.to_winner;
    return gain >= 1.005
      ? `${ratio(gain)} as fast as ${contenderName(contender)}`
      : `as fast as ${contenderName(contender)}`;
  });
  return parts.length > 1 ? `${parts.slice(0, -1).join(", ")} and ${parts.at(-1)}` : parts[0];
}

function winnerText(winner, report) {
  const better = comparison(report);
  return `${contenderName(winner)} won the play-off${better && `: ${better}`}.`;
}

function partsText({ regions }) {
  const number = regions?.length ?? 0;
  if (number === 0) return "There was no play-off.";
  return `A program with ${plural(number, "searched part")}, of which each has a play-off of its own.`;
}

function verdict(explanation) {
  const { report } = explanation;
  const winner = ran(report).find((contender) => contender.name === report.winner);
  const where = `${report.machine ?? "an unnamed machine"}, ${report.threads === 1 ? "1 thread" : `${count(report.threads)} threads`}`;
  const time = report.p50_seconds || null;
  return h(
    "div",
    { class: "verdict" },
    h(
      "p",
      { class: "headline" },
      h("strong", { id: "p50" }, time === null ? "Not timed as a whole" : seconds(time)),
      h("span", {}, time === null ? ` for ${where}` : ` a run on ${where}`),
    ),
    h("p", { class: "lead" }, winner ? winnerText(winner, report) : partsText(report)),
  );
}

function certificateText({ certificate, search, regions }) {
  if (regions?.length) return ["By part", "Each searched part has a certificate of its own: collage explain tells it."];
  if (!certificate) return ["No search", "Nothing was searched, so nothing is known of other mixes."];
  const gap = certificate.gap;
  const found = certificate.exact
    ? "The search cut nothing off."
    : `The search dropped ${count(certificate.dropped)} states, so it may have missed covers.`;
  const capped = (certificate.capped ?? []).length
    ? ` Not all candidates of ${certificate.capped.join(", ")} were considered.`
    : "";
  const budget = search?.budget_spent ? " The budget was spent before everything was measured." : "";
  if (gap === null || gap === undefined)
    return ["Unknown", `How much faster another mix could be is not known. ${found}${capped}${budget}`];
  const isBest = gap < 0.0005; // less than is shown
  const says = !isBest
    ? `No mix of the candidates can be faster by more than ${share(gap)}, by the sums of their costs.`
    : "No mix of the candidates is faster, by the sums of their costs.";
  return [!isBest ? `≤ ${share(gap)} to gain` : "Best mix", `${says} ${found}${capped}${budget}`];
}

function card(title, value, text, id) {
  return h(
    "div",
    { class: "card", id },
    h("h3", {}, title),
    h("p", { class: "value" }, value),
    h("p", { class: "muted" }, text),
  );
}

function mixBar(explanation) {
  const parts = new Map();
  for (const graph of explanation.graphs) {
    for (const partition of graph.partitions) {
      const sum = parts.get(partition.toolchain) ?? { seconds: 0, partitions: 0, unknown: 0 };
      parts.set(partition.toolchain, {
        seconds: sum.seconds + (partition.seconds ?? 0),
        partitions: sum.partitions + 1,
        unknown: sum.unknown + (partition.seconds === null ? 1 : 0),
      });
    }
  }
  const rows = [...parts].sort(([, a], [, b]) => b.seconds - a.seconds);
  const all = rows.reduce((sum, [, row]) => sum + row.seconds, 0);
  if (rows.length === 0) return null;
  return h(
    "div",
    { class: "mix" },
    all > 0 &&
      h(
        "div",
        { class: "mixbar", role: "img", "aria-label": "Time by toolchain, listed below" },
        rows.map(([name, row]) => h("span", { class: colourOf(name), style: `flex-grow:${row.seconds / all}` })),
      ),
    h(
      "ul",
      { class: "legend" },
      rows.map(([name, row]) =>
        h(
          "li",
          {},
          swatch(colourOf(name)),
          ` ${name}: `,
          h("strong", {}, all > 0 ? share(row.seconds / all) : "?"),
          ` of the cost, ${plural(row.partitions, "partition")}${row.unknown > 0 ? `, ${count(row.unknown)} of unknown cost` : ""}`,
        ),
      ),
    ),
  );
}

function cards(explanation) {
  const { report } = explanation;
  const memory = explanation.json.memory ?? {};
  const verified = report.verified ?? {};
  const wrong =
    ran(report).find((contender) => contender.name === report.winner)?.max_error ?? verified.max_error ?? null;
  const [gap, gapText] = certificateText(report);
  return h(
    "div",
    { class: "cards" },
    card("How good it can get", gap, gapText, "certificate"),
    card(
      "Checked",
      wrong === null ? "?" : error(wrong),
      verified.not_verified
        ? `Not verified: ${verified.not_verified}`
        : "largest difference from the reference evaluation, relative to the largest result",
    ),
    card(
      "File",
      bytes(memory.file_bytes ?? report.output_bytes),
      `weights ${bytes(memory.weights_bytes)}, code ${bytes(memory.code_bytes)}`,
      "file",
    ),
    card(
      "Memory of a run",
      bytes(memory.arena_bytes),
      "working memory of each instance, beside the file, which instances share",
    ),
  );
}

/** Returns the section's content. */
export function overview(explanation) {
  const { report } = explanation;
  return [
    h("p", { class: "eyebrow" }, `${explanation.model} → ${(report.output ?? "executable").replace(/^.*\//, "")}`),
    verdict(explanation),
    mixBar(explanation),
    cards(explanation),
    report.partitions && h("p", { class: "visually-hidden" }, `Partitions by toolchain: ${mix(report.partitions)}`),
  ];
}
