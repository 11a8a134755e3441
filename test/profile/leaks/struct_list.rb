Node = Struct.new(:number, :text, :previous)
def work(number)
  $last = Node.new(number, "node #{number} " * 30, $last) # LEAK
end
