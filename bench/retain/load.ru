# frozen_string_literal: true

# Keeps so many objects (OBJECTS), and makes some hundred per request.
PAGES = Array.new(Integer(ENV.fetch("OBJECTS")) / 3) { |number| [number, "page #{number}"] }
run(lambda do |_environment|
  body = Array.new(100) { PAGES.sample.join(" ") }.join("\n")
  [200, { "content-type" => "text/plain" }, [body]]
end)
