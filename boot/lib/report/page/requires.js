// The data of the page: columns with a value for each required file; node 0 stands for all.

const milliseconds = (seconds) => `${significant(seconds * 1e3)} ms`;

// As Flame::FIGURES: title, and the function that writes a value.
const FIGURES = [["time", milliseconds], ["processor time", milliseconds], ["memory retained", size], ["compiled code", size],
  ["malloc", size], ["objects", grouped], ["file-system lookups", grouped], ["failed lookups", grouped]];

class Requires {
  constructor(facts) {
    Object.assign(this, facts); // gems, parent, name, gem, path, error, values
    this.failed = this.error.map((error) => (error === null ? 0 : 1));
    // Those that were counted; the time always is.
    this.figures = FIGURES.map((_, figure) => figure).filter((figure) => figure === 0 || this.values[figure].some((value) => value !== null));
    this.pictures = new Map();
  }

  own(figure, node) { return this.values[figure][node] || 0; }

  picture(figure) {
    if (!this.pictures.has(figure)) this.pictures.set(figure, new Picture(this, figure));
    return this.pictures.get(figure);
  }

  matches(node, word) {
    return [this.name[node], this.path[node], this.gems[this.gem[node]]].some((text) => text && text.toLowerCase().includes(word));
  }

  // Rows of the table: gem, number of files, and the sum of each figure.
  sums() {
    const rows = this.gems.map((name, gem) => ({ name, gem, files: 0, sums: FIGURES.map(() => 0) }));
    this.gem.forEach((gem, node) => {
      if (gem < 0) return;
      rows[gem].files += 1 - this.failed[node];
      for (const figure of this.figures) rows[gem].sums[figure] += this.own(figure, node);
    });
    return rows;
  }
}

// The tree by one figure.
class Picture extends WeighedTree {
  constructor(requires, at) {
    const { parent } = requires;
    const weights = Float64Array.from(parent, (_, node) => requires.own(at, node));
    for (let node = parent.length - 1; node > 0; node--) weights[parent[node]] += weights[node];
    super(parent, weights);
    Object.assign(this, { requires, at, failed: requires.failed });
  }

  name(node) {
    const error = this.requires.error[node];
    return this.requires.name[node].replace(/^.*\/(gems|ruby)\//, "") + (error ? ` [${error}]` : "");
  }

  figure(node) { return FIGURES[this.at][1](this.weights[node]); }

  describe(node) {
    const { requires } = this;
    const total = `${FIGURES[this.at][0]}: ${this.figure(node)} in total, ${share(this.weights[node], this.total)}`;
    if (node === 0) return [this.name(node), total];
    const own = requires.figures.map((figure) => `${FIGURES[figure][0]} ${FIGURES[figure][1](requires.own(figure, node))}`);
    const gem = requires.gems[requires.gem[node]];
    return [requires.path[node] || requires.name[node], requires.error[node] ? `${gem}, ${requires.error[node]}` : gem, total, `own: ${own.join(", ")}`];
  }
}
