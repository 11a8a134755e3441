class Page
  @cache = {}
  class << self
    def fetch(path) = @cache[path] ||= render(path)
    def render(path) = "<html>#{path}</html>" * 30 # LEAK
  end
end
def work(number) = Page.fetch("/orders/#{number}?token=#{number * 7}")
