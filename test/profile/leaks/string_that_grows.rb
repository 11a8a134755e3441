LOG = +""
def work(number)
  LOG << "#{number}: a line of the log that nobody ever writes out\n" * 8 # LEAK
end
