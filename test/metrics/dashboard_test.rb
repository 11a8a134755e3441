# frozen_string_literal: true

require "json"
require "test_helper"
require "npm_package"

# fleet/dashboard.json against Grafana's own schema, which its publishers ship as types.
class DashboardTest < Minitest::Test
  include TestHelper

  SCHEMA = NpmPackage.new("@grafana/schema", "11.6.0", "4a0b9b51b592a399e896502ffcb8478270746b871bcda09c563b56f9412d3fcf")
  COMPILER = NpmPackage.new("typescript", "5.6.3", "ef67f8d8ad895858024b7339d3e34bf112cae3c5db1f538c3079038b17ae30fa")
  # Of the options of each kind of panel: the file, and the type of a field's own settings.
  PANELS = { "timeseries" => ["timeseries/panelcfg/x/TimeSeriesPanelCfg", "FieldConfig"], "stat" => ["stat/panelcfg/x/StatPanelCfg", nil],
             "table" => ["table/panelcfg/x/TablePanelCfg", "FieldConfig"] }.freeze
  # JSON has the values of an enumeration in place of its names.
  PLAIN = <<~TYPE
    type Plain<T> = T extends string ? `${T}` : T extends number | boolean | null | undefined ? T
      : T extends object ? { [K in keyof T]: Plain<T[K]> } : T;
  TYPE

  def test_grafana_knows_each_member
    broken = dashboard
    broken["panels"].find { |panel| panel["type"] == "timeseries" }["options"]["tooltip"]["mode"] = "sideways"
    broken["panels"].first["pluginVersions"] = "1"
    found = faults("dashboard.ts" => dashboard, "broken.ts" => broken).lines.group_by { |line| line[/\A[\w.]+/] }
    assert_equal %w[broken.ts], found.keys, found
    assert_match(/sideways/, found["broken.ts"].join)
    assert_match(/pluginVersions/, found["broken.ts"].join)
  end

  private

  def dashboard = JSON.parse(File.read("#{ROOT}/fleet/dashboard.json"))

  # @return [String] what the compiler says
  def faults(dashboards)
    compiler = File.join(COMPILER.path, "lib/tsc.js")
    types = File.join(SCHEMA.path, "dist/esm")
    Dir.mktmpdir do |folder|
      dashboards.each { |name, dashboard| File.write(File.join(folder, name), source(dashboard, types)) }
      options = { "noEmit" => true, "strict" => true, "skipLibCheck" => true, "moduleResolution" => "node", "types" => [],
                  "baseUrl" => ".", "paths" => { "@grafana/schema" => ["#{types}/index"] } }
      File.write(File.join(folder, "tsconfig.json"), JSON.generate("compilerOptions" => options, "files" => dashboards.keys))
      out, = Open3.capture2e("node", compiler, "-p", ".", chdir: folder)
      out
    end
  rescue NpmPackage::Missing => e
    skip e.message
  end

  def source(dashboard, types)
    imports = PANELS.map do |name, (file, fields)|
      wanted = ["Options as #{name}Options", ("#{fields} as #{name}Fields" if fields)].compact.join(", ")
      "import type { #{wanted} } from #{"#{types}/raw/composable/#{file}_types.gen".inspect};"
    end
    ["import type { Dashboard } from #{"#{types}/raw/dashboard/x/dashboard_types.gen".inspect};", *imports, PLAIN,
     "export const dashboard: Plain<Dashboard> = #{JSON.generate(dashboard)};",
     *dashboard["panels"].flat_map { |panel| panel_source(panel) }].join("\n")
  end

  def panel_source(panel)
    type, id = panel.values_at("type", "id")
    _, fields = PANELS.fetch(type)
    own = panel.dig("fieldConfig", "defaults", "custom")
    ["export const options#{id}: Plain<Partial<#{type}Options>> = #{JSON.generate(panel["options"])};",
     ("export const fields#{id}: Plain<Partial<#{type}Fields>> = #{JSON.generate(own)};" if own && fields)].compact
  end
end
