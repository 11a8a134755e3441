// A tree whose nodes have a weight. The children of a node are in the order of their weights.

class WeighedTree {
  // parents: of each node; node 0 is the root, and a node's number is larger than its parent's
  // weights: of each node with all below it
  constructor(parents, weights) {
    const size = parents.length;
    Object.assign(this, { parents, weights, depths: new Int32Array(size) });
    for (let node = 1; node < size; node++) this.depths[node] = this.depths[parents[node]] + 1;
    this.first = new Int32Array(size + 1);
    for (let node = 1; node < size; node++) this.first[parents[node] + 1]++;
    for (let node = 0; node < size; node++) this.first[node + 1] += this.first[node];
    this.children = new Int32Array(Math.max(0, size - 1));
    const next = this.first.slice();
    for (let node = 1; node < size; node++) this.children[next[parents[node]]++] = node;
    this.left = new Float64Array(size);
    for (let node = 0; node < size; node++) this.arrange(node);
  }

  arrange(node) {
    const list = this.childrenOf(node);
    if (list.length > 1) list.sort((one, other) => this.weights[other] - this.weights[one] || one - other);
    let left = this.left[node];
    for (const child of list) {
      this.left[child] = left;
      left += this.weights[child];
    }
  }

  get total() { return this.weights[0]; }

  childrenOf(node) { return this.children.subarray(this.first[node], this.first[node + 1]); }

  // From the root to a node.
  path(node) {
    const nodes = [];
    for (let up = node; up >= 0; up = this.parents[up]) nodes.push(up);
    return nodes.reverse();
  }

  // Found nodes that are not below another one. found: 1 for each node that the search has found
  outermost(found) {
    const inside = new Uint8Array(this.parents.length), list = [];
    for (let node = 0; node < inside.length; node++) {
      const above = node > 0 && inside[this.parents[node]];
      inside[node] = above || found[node];
      if (found[node] && !above) list.push(node);
    }
    return list;
  }

  // The last level of a subtree with a node that is drawn: one with a weight below a node of at least `least`.
  deepest(root, least) {
    let deepest = this.depths[root];
    const stack = [root];
    while (stack.length) {
      for (const child of this.childrenOf(stack.pop())) {
        if (this.weights[child] > 0) deepest = Math.max(deepest, this.depths[child]);
        if (this.weights[child] < least) break;
        stack.push(child);
      }
    }
    return deepest;
  }
}
