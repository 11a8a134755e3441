# frozen_string_literal: true

# Prints where sig/culet.rbs and the library disagree, a line each: a method that is missing, or whose parameters differ.
#
#   bundle exec ruby -Ilib test/signatures/conformance.rb
require "rbs"
%w[culet auto require feature_index agent unused profile limit blackbox metrics limits].each { |part| require part == "culet" ? part : "culet/#{part}" }

loader = RBS::EnvironmentLoader.new
loader.add(path: Pathname(File.expand_path("../../sig", __dir__)))
environment = RBS::Environment.from_loader(loader).resolve_type_names
builder = RBS::DefinitionBuilder.new(env: environment)

# What a method's Method#parameters would be if it were as the signature says: the kinds and, of keywords, the names.
def parameters_of(type)
  function = type.type
  [*function.required_positionals.map { [:req] }, *function.optional_positionals.map { [:opt] },
   *(function.rest_positionals ? [[:rest]] : []),
   *function.required_keywords.keys.map { |name| [:keyreq, name] },
   *function.optional_keywords.keys.map { |name| [:key, name] }]
end

def actual_parameters(method)
  parameters = method.parameters.map { |kind, name| %i[key keyreq].include?(kind) ? [kind, name] : [kind] }
  parameters - [[:block]]
end

def owner_class(label) = Object.const_get(label.chop)

problems = []
compare = lambda do |definition, label, owner, lookup|
  definition.methods.each do |name, signature|
    next unless signature.defined_in == owner && signature.accessibility == :public && name != :initialize

    method = name == :new ? owner_class(label).instance_method(:initialize) : lookup.call(name)
    next problems << "#{label}#{name} is not there" unless method

    # A method of C tells its count alone.
    expected = signature.method_types.map { |type| parameters_of(type) }
    problems << "#{label}#{name} takes #{actual_parameters(method)}, its signature #{expected.first}" unless expected.include?(actual_parameters(method))
  end
end

environment.class_decls.each_key do |type_name|
  next unless type_name.to_s.start_with?("::Culet")

  # What needs a server to load is looked at by the tests of that server.
  constant = begin
    Object.const_get(type_name.to_s)
  rescue NameError
    next if %w[::Culet::Falcon ::Culet::Pitchfork ::Culet::Resque ::Culet::Sidekiq].include?(type_name.to_s)

    problems << "#{type_name} is not there"
    next
  end
  compare.call(builder.build_singleton(type_name), "#{constant}.", type_name, ->(name) { constant.method(name) if constant.respond_to?(name) })
  compare.call(builder.build_instance(type_name), "#{constant}#", type_name, ->(name) { constant.instance_method(name) if constant.method_defined?(name) })
end
puts problems
