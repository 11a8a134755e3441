# frozen_string_literal: true

require "harness"
use_gemfile
require "nokogiri"
require "words"

LINKS = Words::LIST.first(8).map { |word| "<li class=\"#{word}\"><a href=\"/#{word}\">#{word}</a></li>" }
ARTICLES = Array.new(400) do |number|
  "<article id=\"a#{number}\"><h2>#{Words.text(number, 5)}</h2><p>#{Words.text(number, 80)}</p>" \
    "<ul>#{LINKS.join}</ul></article>"
end
PAGE = "<!DOCTYPE html><html><body>#{ARTICLES.join}</body></html>".freeze

run_benchmark(12) do
  document = Nokogiri::HTML(PAGE)
  document.css("article li.memory a").each { |link| link["rel"] = "nofollow" }
  document.xpath("//h2").each { |heading| heading.content = heading.text.reverse }
  document.to_html
end
