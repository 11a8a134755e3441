// The tooltip at the pointer.

class Tip {
  constructor(root) { this.root = root; }

  // lines: null hides it.
  show(lines, event) {
    this.root.hidden = !lines;
    if (!lines) return;
    this.root.replaceChildren(...lines.map((line) => element("div", {}, line)));
    const box = this.root.getBoundingClientRect();
    const left = Math.min(event.clientX + 14, window.innerWidth - box.width - 8);
    const top = event.clientY + 18 + box.height > window.innerHeight ? event.clientY - box.height - 12 : event.clientY + 18;
    this.root.style.left = `${Math.max(8, left)}px`;
    this.root.style.top = `${Math.max(8, top)}px`;
  }
}
