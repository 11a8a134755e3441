// The tree of what is retained. A node is an object, a holder, a set of holders, or all small objects of a class; its bytes
// are all that would be free without it.

const [OBJECT, SMALL] = [3, 5];

// Colours of objects, by their class.
const KINDS = ["text", "collections", "code and Ruby's own", "other objects", "holders"];
const TEXTS = new Set(["String", "Symbol"]);
const COLLECTIONS = new Set(["Array", "Hash", "Set", "Struct", "Range", "Thread::Queue", "Thread::SizedQueue"]);
const CODE = new Set(["", "Class", "Module", "Proc", "Method", "UnboundMethod", "Binding", "Thread", "Fiber", "Enumerator", "RubyVM::InstructionSequence"]);

class Heap extends WeighedTree {
  constructor({ nodes, strings, paths, classes }) {
    super(nodes.parent, nodes.bytes);
    Object.assign(this, { nodes, strings, paths, classes });
    this.kinds = nodes.sort.map((_, node) => this.kind(node));
  }

  isObject(node) { return this.nodes.sort[node] === OBJECT; }

  className(node) { return this.strings[this.nodes.class[node]]; }

  kind(node) {
    if (!this.isObject(node) && this.nodes.sort[node] !== SMALL) return 4;
    const name = this.className(node);
    if (TEXTS.has(name)) return 0;
    if (COLLECTIONS.has(name)) return 1;
    return CODE.has(name) || name.startsWith("T_") || name.startsWith("(") ? 2 : 3;
  }

  // The text of a box: a key or variable, and the class of the object.
  name(node) {
    const name = this.strings[this.nodes.name[node]];
    return this.isObject(node) ? [name, this.className(node)].filter(Boolean).join(" ") : name;
  }

  figure(node) { return size(this.weights[node]); }

  // 1 for each node with the word in its name, class or address.
  find(word) {
    const found = this.strings.map((text) => text.toLowerCase().includes(word));
    return Uint8Array.from(this.parents, (_, node) => {
      const address = this.nodes.address[node];
      return node > 0 && (found[this.nodes.name[node]] || found[this.nodes.class[node]] || (address !== null && address.includes(word))) ? 1 : 0;
    });
  }

  // The lines of the tooltip; those of a holder end with the path to most of its bytes.
  describe(node) {
    const { own, objects, address } = this.nodes;
    const parent = this.parents[node];
    const part = parent > 0 ? `; ${share(this.weights[node], this.weights[parent])} of the box above` : "";
    const lines = [this.name(node), `${this.figure(node)}, ${share(this.weights[node], this.total)} of all${part}`];
    lines.push(`${counted(objects[node], "object")}${this.isObject(node) ? `; ${size(own[node])} of its own` : ""}`);
    if (this.isObject(node) && address[node]) lines.push(address[node]);
    return lines.concat(this.paths[node] || []);
  }
}

class Colours extends CanvasColours {
  read() {
    super.read();
    this.kinds = KINDS.map((_, kind) => styled(`--kind-${kind}`));
  }

  of(heap, node) { return this.kinds[heap.kinds[node]]; }
}
