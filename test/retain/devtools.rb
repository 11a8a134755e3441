# frozen_string_literal: true

require "json"
require "map/browser"

# Chrome's DevTools, as far as they read heap snapshots: the loader and the model behind the panel "Memory".
module DevTools
  PAGE = "devtools://devtools/bundled/devtools_app.html"
  # The text goes over in pieces, as DevTools reads a file.
  PIECE = 1 << 20
  LOADER = "./entrypoints/heap_snapshot_worker/heap_snapshot_worker.js"

  module_function

  # @param text [String] a heap snapshot
  # @return [Hash] what the model says: nodes, edges, total (bytes), aggregates by class
  def load(browser, text)
    browser.visit(PAGE)
    browser.evaluate(<<~JAVASCRIPT)
      import(#{JSON.generate(LOADER)}).then(function (module) {
        window.pieces = { module: module, loader: new module.HeapSnapshotLoader.HeapSnapshotLoader({ sendEvent: function () {} }) };
        return true;
      })
    JAVASCRIPT
    0.step(text.size - 1, PIECE) { |at| browser.evaluate("(pieces.loader.write(#{JSON.generate(text[at, PIECE])}), true)") }
    browser.evaluate(<<~JAVASCRIPT)
      (async function () {
        var module = pieces.module.HeapSnapshot, channel = new MessageChannel();
        new module.SecondaryInitManager(channel.port2);
        pieces.loader.close();
        var snapshot = await pieces.loader.buildSnapshot(channel.port1);
        var classes = snapshot.aggregatesWithFilter ? snapshot.aggregatesWithFilter({}) : {};
        return { nodes: snapshot.nodeCount, edges: snapshot.edgeCount || snapshot.containmentEdges.length / 3, total: snapshot.totalSize,
                 classes: Object.values(classes).map(function (one) { return [one.name, one.count, one.self, one.maxRet]; }) };
      }())
    JAVASCRIPT
  end
end
