/**
 * data.js: reads the JSON islands of the page, and follows the indices of an explanation (docs/explanation.md) to what they stand
 * for. Nothing is computed here that the explanation states.
 */

/** The parsed JSON of the island `id`, or null if the page has none. */
export function island(id) {
  const element = document.getElementById(id);
  return element ? JSON.parse(element.textContent) : null;
}

/** One partition of the winner with what its indices refer to. */
class Partition {
  constructor(graph, index, row) {
    this.graph = graph;
    this.index = index;
    this.row = row;
    this.candidate = graph.candidates[row.candidate] ?? null;
    this.toolchain = graph.toolchainName(this.candidate?.toolchain);
    this.cost = graph.costOf(this.candidate);
    this.seconds = row.seconds ?? null;
    this.share = row.share ?? null;
    this.operators = row.operators ?? "";
    this.nodes = row.nodes ?? [];
    this.betweenSeconds = (row.transition_seconds ?? 0) + (row.switch_seconds ?? 0) + (row.conversion_seconds ?? 0);
  }

  /** Names that its nodes have in the model. */
  get names() {
    return this.nodes.map((node) => this.graph.nodes[node].name).filter((name) => name);
  }
}

/** A graph of the explanation: a model's only one, or a searched region of a program. */
export class Graph {
  constructor(row, layout, index) {
    this.row = row;
    this.layout = layout ?? null;
    this.index = index;
    this.nodes = row.nodes ?? [];
    this.candidates = row.candidates ?? [];
    this.costs = row.costs ?? [];
    this.partitions = (row.partitions ?? []).map((partition, number) => new Partition(this, number, partition));
    this.partitionOf = new Map();
    for (const partition of this.partitions) {
      for (const node of partition.nodes) this.partitionOf.set(node, partition);
    }
    this.chosen = new Set(this.partitions.map((partition) => partition.row.candidate));
    this.contenders = [];
  }

  /** Takes the rows of the play-off from this graph's report, with the rounds that the explanation keeps of each. */
  addPlayOff(rows) {
    const kept = new Map((this.row.contenders ?? []).map((contender) => [contender.name, contender]));
    this.contenders = rows.map((row) => ({ ...row, rounds: kept.get(row.name)?.rounds ?? {} }));
  }

  toolchainName(toolchain) {
    return this.row.toolchains?.[toolchain]?.name ?? "unknown";
  }

  costOf(candidate) {
    return candidate?.cost === undefined || candidate.cost === null ? null : (this.costs[candidate.cost] ?? null);
  }

  /** The candidates that hold node `node`: those that were chosen first, then by cost; failed ones last. */
  candidatesWith(node) {
    this.holders ??= this.indexHolders();
    return (this.holders.get(node) ?? [])
      .map((index) => {
        const candidate = this.candidates[index];
        const cost = this.costOf(candidate);
        return {
          index,
          candidate,
          cost,
          toolchain: this.toolchainName(candidate.toolchain),
          chosen: this.chosen.has(index),
        };
      })
      .sort((a, b) => b.chosen - a.chosen || (a.cost?.seconds ?? Infinity) - (b.cost?.seconds ?? Infinity));
  }

  indexHolders() {
    const holders = new Map();
    this.candidates.forEach((candidate, index) => {
      for (const node of candidate.nodes ?? []) {
        if (!holders.has(node)) holders.set(node, []);
        holders.get(node).push(index);
      }
    });
    return holders;
  }

  /** Nodes that read the result of `node`. */
  readersOf(node) {
    this.readers ??= this.indexReaders();
    return this.readers.get(node) ?? [];
  }

  indexReaders() {
    const readers = new Map();
    this.nodes.forEach((node, index) => {
      for (const input of new Set(node.inputs ?? [])) {
        if (!readers.has(input)) readers.set(input, []);
        readers.get(input).push(index);
      }
    });
    return readers;
  }

  /** Reasons why toolchains do not compute `node`, or not alone. */
  refusalsOf(node) {
    return (this.row.refusals ?? []).filter((refusal) => (refusal.nodes ?? []).includes(node));
  }

  /** A name for people: that of the model if there is one, else the operator's, with the index. */
  nodeName(node) {
    const row = this.nodes[node];
    return row?.name || `${row?.op ?? row?.kind ?? "node"} ${node}`;
  }
}

/** An executable's explanation. `layouts` are those of its graphs, absent for the one that is only compared with. */
export class Explanation {
  constructor(json, layouts = []) {
    this.json = json;
    this.report = json.report ?? {};
    this.graphs = (json.graphs ?? []).map((row, index) => new Graph(row, layouts[index], index));
    const reports = this.report.regions?.length ? this.report.regions : [this.report];
    for (const graph of this.graphs) graph.addPlayOff(reports[graph.index]?.play_off ?? []);
  }

  get model() {
    return this.json.model ?? this.report.model ?? "model";
  }

  /** All names of toolchains that compute something, those with most time first. */
  toolchains() {
    const seconds = new Map();
    for (const graph of this.graphs) {
      for (const partition of graph.partitions) {
        seconds.set(partition.toolchain, (seconds.get(partition.toolchain) ?? 0) + (partition.seconds ?? 0));
      }
    }
    const names = [...seconds.keys()].sort((a, b) => seconds.get(b) - seconds.get(a));
    const others = this.graphs.flatMap((graph) => (graph.row.toolchains ?? []).map((toolchain) => toolchain.name));
    return [...new Set([...names, ...others])];
  }
}
