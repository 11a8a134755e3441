// How each page of a forked process stands to its relative's page at the same address.

const SHARINGS = [
  { key: "absent", colour: "#ffffff", dark: "#101216", title: "not in memory" },
  { key: "shared", colour: "#9ecae1", dark: "#2d5f80", title: "still shared, or a file's" },
  { key: "unshared", colour: "#d55e00", dark: "#ee7420", title: "stopped being shared" },
  { key: "fresh", colour: "#7f7f7f", dark: "#9aa0a8", title: "added since the fork" },
];

const Sharing = {
  // Index into SHARINGS of a cell's state.
  of(state) {
    if ((state & KIND_BITS) < FIRST_RESIDENT) return 0;
    if (state & UNSHARED) return 2;
    return state & PRIVATE ? 3 : 1;
  },

  // Bytes of the picture's cells of each standing, by its key.
  tally(picture) {
    const cells = SHARINGS.map(() => 0);
    for (const strip of picture.strips) {
      for (const [, pages, first] of strip.pieces) {
        for (let cell = first; cell < first + pages; cell++) if (picture.kind(cell) > 0) cells[Sharing.of(picture.states[cell])]++;
      }
    }
    return Object.fromEntries(SHARINGS.map((one, index) => [one.key, cells[index] * picture.pageBytes]));
  },
};
