# frozen_string_literal: true

require "test_helper"
require "yaml"
require_relative "kubernetes_schema"
require_relative "page"

# The manifests in the documents, by the schema of Kubernetes.
class DocsKubernetesTest < Minitest::Test
  # Custom resources, whose schema is not Kubernetes' own.
  CUSTOM = %w[monitoring.coreos.com/v1/PodMonitor].freeze

  def setup
    @schema = KubernetesSchema.load
  rescue NpmPackage::Missing => e
    skip e.message
  end

  def test_the_manifests_of_the_documents_are_valid
    manifests = Page.all.flat_map { |page| manifests_of(page).map { |manifest| [page.name, manifest] } }
    assert_includes manifests.map(&:first), "docs/guide/kubernetes.md"
    known, custom = manifests.partition { |_, manifest| @schema.knows?(manifest) }
    assert_equal CUSTOM, custom.map { |_, manifest| manifest.values_at("apiVersion", "kind").join("/") }
    known.each { |name, manifest| assert_empty @schema.errors(manifest), name }
  end

  # What was written, what a slip of the pen makes of it, and the error.
  SLIPS = [["matchLabels", "matchLabel", "no field matchLabel"], ["containerPort: 3000", "containerPort: http", "containerPort is"],
           ["value: auto", "value: 1", "value is 1"], ["memory: 512Mi", "memory: 512MiB", "not a quantity"],
           ["  template:", "  templates:", "lacks template"], ["command:", "commands:", "no field commands"]].freeze

  def test_errors_are_found
    text = Page.new("docs/guide/kubernetes.md").blocks.find { |block| block.language == "yaml" }.code
    SLIPS.each do |old, new, message|
      assert_includes text, old
      assert_includes @schema.errors(YAML.safe_load(text.sub(old, new))).join("\n"), message
    end
  end

  private

  def manifests_of(page)
    texts = page.blocks.select { |block| block.language == "yaml" }.map(&:code)
    texts.flat_map { |text| YAML.load_stream(text) }.select { |document| document.is_a?(Hash) && document.key?("apiVersion") }
  end
end
