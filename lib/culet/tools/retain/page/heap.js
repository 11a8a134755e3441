// The tree of what is retained. A node is an object, a holder, a set of holders, or all small objects of a class; its bytes
// are all that would be free without it.

const [OBJECT, SMALL] = [3, 5];

// Colours of objects, by their class.
const KINDS = ["text", "collections", "code and Ruby's own", "other objects", "holders"];
const TEXTS = new Set(["String", "Symbol"]);
const COLLECTIONS = new Set(["Array", "Hash", "Set", "Struct", "Range", "Thread::Queue", "Thread::SizedQueue"]);
const CODE = new Set(["", "Class", "Module", "Proc", "Method", "UnboundMethod", "Binding", "Thread", "Fiber", "Enumerator", "RubyVM::InstructionSequence"]);

class Heap extends WeighedTree {
  constructor(facts) {
    super(facts.nodes.parent, null, facts.nodes.bytes);
    this.strings = facts.strings;
    this.nodes = facts.nodes;
    this.paths = new Map(Object.entries(facts.paths).map(([node, list]) => [Number(node), list]));
    this.classes = facts.classes;
    this.size = this.parents.length;
  }

  bytes(node) { return this.weights[node]; }

  sort(node) { return this.nodes.sort[node]; }

  name(node) { return this.strings[this.nodes.name[node]]; }

  className(node) { return this.strings[this.nodes.class[node]]; }

  kind(node) {
    if (this.sort(node) !== OBJECT && this.sort(node) !== SMALL) return 4;
    const name = this.className(node);
    if (TEXTS.has(name)) return 0;
    if (COLLECTIONS.has(name)) return 1;
    return CODE.has(name) || name.startsWith("T_") || name.startsWith("(") ? 2 : 3;
  }

  // The text of a box: a key or variable, and the class of the object.
  label(node) {
    if (this.sort(node) !== OBJECT) return this.name(node);
    return [this.name(node), this.className(node)].filter(Boolean).join(" ");
  }

  // From the holder to the node.
  line(node) { return this.path(node).slice(1); }

  // 1 for each node with the word in its name, class or address.
  find(word) {
    const found = this.strings.map((text) => text.toLowerCase().includes(word));
    return Uint8Array.from({ length: this.size }, (_, node) => {
      const address = this.nodes.address[node];
      return node > 0 && (found[this.nodes.name[node]] || found[this.nodes.class[node]] || (address !== null && address.includes(word))) ? 1 : 0;
    });
  }

  // The lines of the tooltip.
  describe(node) {
    const lines = [this.label(node)];
    const { own, objects, address } = this.nodes;
    const parent = this.parents[node];
    const part = parent > 0 ? `; ${share(this.bytes(node), this.bytes(parent))} of what is around` : "";
    lines.push(`${size(this.bytes(node))}, ${share(this.bytes(node), this.total)} of all${part}`);
    lines.push(`${counted(objects[node], "object")}${this.sort(node) === OBJECT ? `; ${size(own[node])} of its own` : ""}`);
    if (this.sort(node) === OBJECT && address[node]) lines.push(address[node]);
    return lines;
  }
}
