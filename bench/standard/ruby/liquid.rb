# frozen_string_literal: true

require "harness"
use_gemfile
require "liquid"
require "words"

SOURCE = <<~LIQUID
  <h1>{{ shop.name | upcase }}</h1>
  {% for product in shop.products %}
    <div class="{% cycle 'odd', 'even' %}"><h2>{{ product.title | capitalize | escape }}</h2>
    {% if product.price > 50 %}<b>{{ product.price | times: 0.9 | round: 2 }}</b>{% else %}{{ product.price }}{% endif %}
    <p>{{ product.text | truncatewords: 30 | replace: "memory", "store" }}</p>
    {% for tag in product.tags limit: 5 %}<a href="/{{ tag | downcase }}">{{ tag }}</a>{% unless forloop.last %}, {% endunless %}{% endfor %}
    {% assign size = product.text | size %}{{ size | divided_by: 7 | append: " lines" }}</div>
  {% endfor %}
LIQUID
SHOP = { "name" => "measured", "products" => Array.new(100) do |number|
  { "title" => Words.text(number, 5), "price" => number, "text" => Words.text(number, 80), "tags" => Words::LIST.rotate(number) }
end }.freeze

run_benchmark(70) { Liquid::Template.parse(SOURCE).render!("shop" => SHOP) }
