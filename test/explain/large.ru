# frozen_string_literal: true

require_relative "load"
CATALOGUE = Load.texts(45)
run ->(_) { [200, { "content-type" => "text/plain" }, [Load.work(1)]] }
