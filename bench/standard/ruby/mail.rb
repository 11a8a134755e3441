# frozen_string_literal: true

require "harness"
use_gemfile
require "mail"
require "words"

def message(number)
  Mail.new do
    from "sender-#{number}@example.com"
    to Array.new(20) { |index| "Receiver #{index} <receiver-#{index}@example.com>" }
    subject Words.text(number, 8)
    text_part { body Words.paragraphs(number, 10) }
    html_part { body "<p>#{Words.paragraphs(number, 10)}</p>" }
    add_file filename: "table.bin", content: Random.new(number).bytes(100_000)
  end.to_s
end

# Writes a message, reads it and writes it again.
run_benchmark(80) { Mail.new(message(1)).tap { |mail| mail.attachments.first.decoded.size }.to_s }
