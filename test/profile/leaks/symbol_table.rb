# Symbols that code refers to are never freed.
def work(number) = Object.define_method(:"handler_#{number}_#{"x" * 60}") { number } # LEAK
