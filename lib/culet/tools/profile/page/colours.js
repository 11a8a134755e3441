// The colours of boxes by the kind of their frame or, in a comparison, by their change.

const TINTS = 3;

function mixed(one, other, share) {
  const parts = (colour) => [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
  const [from, to] = [parts(one), parts(other)];
  return `#${from.map((part, at) => Math.round(part + (to[at] - part) * share).toString(16).padStart(2, "0")).join("")}`;
}

class Colours extends CanvasColours {
  read() {
    super.read();
    for (const name of ["same", "more", "less"]) this[name] = styled(`--${name}`);
    this.kinds = KINDS.map((_, kind) => Array.from({ length: TINTS }, (_, tint) => mixed(styled(`--kind-${kind}`), this.paper, tint * 0.13)));
  }

  of(picture, node) {
    const frame = picture.tree.frames[node];
    if (frame < 0) return this.rest;
    if (picture.before) {
      const change = picture.change(node);
      return change === 0 ? this.same : mixed(this.same, change > 0 ? this.more : this.less, 0.3 + 0.7 * Math.abs(change));
    }
    return this.kinds[picture.profile.frames.kind[frame]][picture.profile.functions[frame] * 7 % TINTS];
  }
}
