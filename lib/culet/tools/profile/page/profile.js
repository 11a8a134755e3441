// The data of the page: sites, the tree of their stacks, sums and intervals.

const KINDS = ["application", "gem", "Ruby", "native library", "class of objects", "unknown"];
const NORMAL_95 = 1.959964;

// Above this number of samples the distribution counts as normal, as in Culet::Profile::Estimate.
const FEW_SAMPLES = 30;

// 95 % limits of a Poisson mean after `count` events, by Wilson's and Hilferty's approximation.
function poissonLimits(count) {
  const limit = (events, sign) => Math.max(0, events * (1 - 1 / (9 * events) + sign * NORMAL_95 / (3 * Math.sqrt(events))) ** 3);
  return [count > 0 ? limit(count, -1) : 0, limit(count + 1, 1)];
}

const COLUMNS = ["bytes", "blocks", "samples", "variance"];

// Sums over sites. `bytes` is an estimate; its interval follows from the number of samples and the variance.
class Sum {
  constructor(bytes = 0, blocks = 0, samples = 0, variance = 0) {
    Object.assign(this, { bytes, blocks, samples, variance });
  }

  add(other) {
    for (const name of COLUMNS) this[name] += other[name];
    return this;
  }

  // Lower and upper limit of the bytes, 95 %. `distance`: mean bytes between two samples.
  interval(distance) {
    if (this.samples === 0) return [0, poissonLimits(0)[1] * distance];
    if (this.samples > FEW_SAMPLES) {
      const half = NORMAL_95 * Math.sqrt(this.variance);
      return [Math.max(0, this.bytes - half), this.bytes + half];
    }
    const each = this.bytes / this.samples;
    // Blocks that are larger than the distance are nearly always sampled: less uncertain than a Poisson count.
    const certainty = Math.min(1, Math.sqrt(this.variance / (each * this.bytes)));
    return poissonLimits(this.samples).map((limit) => this.bytes + (limit * each - this.bytes) * certainty);
  }

  // Interval of the change since `before` from the intervals of both (Zou and Donner 2008).
  changeInterval(before, distance) {
    const [low, high] = this.interval(distance);
    const [lowBefore, highBefore] = before.interval(distance);
    const change = this.bytes - before.bytes;
    return [change - Math.hypot(this.bytes - low, highBefore - before.bytes), change + Math.hypot(high - this.bytes, before.bytes - lowBefore)];
  }
}

// Four columns of sums, indexed by tree node or site.
class Sums {
  constructor(size) {
    for (const name of COLUMNS) this[name] = new Float64Array(size);
  }

  at(index) { return new Sum(this.bytes[index], this.blocks[index], this.samples[index], this.variance[index]); }

  addTo(index, other, from) {
    for (const name of COLUMNS) this[name][index] += other[name][from];
  }
}

class Profile {
  constructor(facts) {
    const { strings, frames, stacks, sites, groups } = facts;
    Object.assign(this, { strings, frames, stacks, sites, groups });
    this.totals = facts.views;
    this.earlierTotals = facts.base_views;
    this.distance = facts.sample_bytes;
    this.siteCount = this.sites.node.length;
    this.comparing = Boolean(facts.base_views);
    this.directory = this.commonDirectory();
    this.labels = this.frames.kind.map((_, frame) => this.label(frame));
    this.functions = this.functionOfFrames();
    this.folds = new Map();
    this.columns = new Map();
  }

  text(index) { return index < 0 ? null : this.strings[index]; }

  // The directory of all files of the application.
  commonDirectory() {
    let common = null;
    this.frames.kind.forEach((kind, frame) => {
      const file = this.text(this.frames.file[frame]);
      if (kind !== 0 || !file || !file.startsWith("/")) return;
      const parts = file.split("/").slice(0, -1);
      if (!common) common = parts;
      let same = 0;
      while (same < common.length && common[same] === parts[same]) same++;
      common = common.slice(0, same);
    });
    return common && common.length > 1 ? `${common.join("/")}/` : null;
  }

  // A path without the directories that all files of its kind share.
  short(path) {
    if (this.directory && path.startsWith(this.directory)) return path.slice(this.directory.length);
    return path.replace(/^.*\/(?:gems|ruby)\/(?=[^/]+\/)/, "");
  }

  place(frame, whole = false) {
    const [file, line] = [this.text(this.frames.file[frame]), this.frames.line[frame]];
    if (!file) return this.text(this.frames.library[frame]) || "";
    return (whole ? file : this.short(file)) + (line > 0 ? `:${line}` : "");
  }

  label(frame) {
    return this.text(this.frames.method[frame]) || this.place(frame) || "unknown";
  }

  matches(frame, word) {
    return ["method", "file", "gem", "library"].some((column) => {
      const text = this.text(this.frames[column][frame]);
      return text !== null && text.toLowerCase().includes(word);
    });
  }

  // Frames of one method at different lines have the same function.
  functionOfFrames() {
    const numbers = new Map();
    this.functionFrames = [];
    return Int32Array.from(this.frames.kind, (kind, frame) => {
      const key = [kind, this.frames.method[frame], this.frames.method[frame] < 0 ? this.frames.line[frame] : -1, this.frames.file[frame], this.frames.library[frame]].join(" ");
      if (!numbers.has(key)) {
        numbers.set(key, this.functionFrames.length);
        this.functionFrames.push(frame);
      }
      return numbers.get(key);
    });
  }

  // The sums of the sites in a view.
  view(name, base = false) {
    const key = `${base} ${name}`;
    if (!this.columns.has(key)) {
      const sums = new Sums(this.siteCount);
      const from = (base ? this.earlierTotals : this.totals)[name];
      from.site.forEach((site, at) => { for (const column of COLUMNS) sums[column][site] = from[column][at]; });
      this.columns.set(key, sums);
    }
    return this.columns.get(key);
  }

  fold(lines, native) {
    const key = `${lines} ${native}`;
    if (!this.folds.has(key)) this.folds.set(key, this.foldStacks(lines, native));
    return this.folds.get(key);
  }

  // The tree of stacks: a node for each line or each method; without native frames, what they allocate counts for the
  // Ruby frame that called them. Node 0 is the root.
  foldStacks(lines, native) {
    const tree = new Tree();
    const nodes = this.stacks.parent;
    tree.of = new Int32Array(nodes.length);
    for (let node = 1; node < nodes.length; node++) {
      const frame = this.stacks.frame[node];
      const parent = tree.of[nodes[node]];
      const hidden = !native && this.frames.library[frame] >= 0;
      tree.of[node] = hidden ? parent : tree.child(parent, lines ? frame : this.functionFrames[this.functions[frame]]);
    }
    return tree;
  }

  // Sums of all nodes of a tree over the sites for which `shown` is 1.
  weigh(tree, columns, shown) {
    const sums = new Sums(tree.size), own = new Float64Array(tree.size);
    for (let site = 0; site < this.siteCount; site++) {
      if (!shown[site] || columns.samples[site] === 0) continue;
      const node = tree.of[this.sites.node[site]];
      sums.addTo(node, columns, site);
      own[node] += columns.bytes[site];
    }
    for (let node = tree.size - 1; node > 0; node--) sums.addTo(tree.parents[node], sums, node);
    sums.own = own;
    return sums;
  }
}

// A tree in columns; parents have smaller numbers than their children.
class Tree {
  constructor() {
    this.parents = [-1];
    this.frames = [-1];
    this.byKey = new Map();
  }

  get size() { return this.parents.length; }

  child(parent, frame) {
    const key = parent * 4194304 + frame;
    let node = this.byKey.get(key);
    if (node === undefined) {
      node = this.parents.length;
      this.parents.push(parent);
      this.frames.push(frame);
      this.byKey.set(key, node);
    }
    return node;
  }
}

// A tree with the sums of one view, for a graph.
class Picture extends WeighedTree {
  // before: sums of the earlier profile, or null
  constructor(profile, tree, sums, before = null) {
    super(tree.parents, sums.bytes);
    Object.assign(this, { profile, tree, sums, before });
  }

  name(node) {
    const frame = this.tree.frames[node];
    if (frame < 0) return "all";
    const line = this.profile.frames.line[frame];
    return this.profile.labels[frame] + (this.lines && line > 0 && this.profile.frames.method[frame] >= 0 ? `:${line}` : "");
  }

  figure(node) {
    if (!this.before) return size(Math.round(this.sums.bytes[node]));
    return signed(this.sums.bytes[node] - this.before.bytes[node]);
  }

  // The lines of a node's tooltip: its name, then its figures.
  describe(node) {
    const { profile, sums, before } = this;
    const sum = sums.at(node), name = this.name(node);
    const frame = this.tree.frames[node];
    const lines = [name];
    if (frame >= 0) {
      const place = profile.place(frame, true);
      const gem = profile.text(profile.frames.gem[frame]);
      if (place && place !== name) lines.push(place);
      lines.push(gem ? `${KINDS[profile.frames.kind[frame]]}: ${gem}` : KINDS[profile.frames.kind[frame]]);
    }
    lines.push(`${withInterval(sum, profile.distance)}, 95 % interval; ${share(sum.bytes, this.total)}`);
    lines.push(`${counted(sum.blocks, "block")} from ${counted(sum.samples, "sample")}${sums.own[node] > 0 && sums.own[node] < sum.bytes ? `; ${size(Math.round(sums.own[node]))} of its own` : ""}`);
    if (before) {
      const earlier = before.at(node);
      lines.push(`${changeWithInterval(sum, earlier, profile.distance)} since the earlier profile (${size(Math.round(earlier.bytes))})`);
      if (this.change(node) === 0) lines.push("the change is within the interval");
    }
    return lines;
  }

  // -1 (all of it gone) to 1 (all of it new); 0 if the change lies within the interval.
  change(node) {
    if (!this.changes) this.changes = new Float64Array(this.tree.size).fill(NaN);
    if (Number.isNaN(this.changes[node])) {
      const [now, then] = [this.sums.at(node), this.before.at(node)];
      const [low, high] = now.changeInterval(then, this.profile.distance);
      this.changes[node] = low > 0 || high < 0 ? (now.bytes - then.bytes) / Math.max(now.bytes, then.bytes) : 0;
    }
    return this.changes[node];
  }
}
