# frozen_string_literal: true

# Redmine with its pages in turn at the address /measured; its environment is loaded. The header x-worker has the pid of
# the answering process.
class Rotation
  ADDRESS = "/measured"
  PAGES = %w[/ /projects /projects/measured-P /projects/measured-P/issues /issues/N /projects/measured-P/activity
             /projects/measured-P/wiki /issues/N /projects/measured-P/news /issues /issues/N
             /projects/measured-P/issues.csv /projects/measured-P/issues/calendar].freeze

  def initialize(application)
    @application = application
    @first = Issue.minimum(:id)
    @last = Issue.maximum(:id)
    @projects = Project.count
    @lock = Mutex.new
    @number = 0
  end

  def call(environment)
    status, headers, body = @application.call(environment["PATH_INFO"] == ADDRESS ? turned(environment) : environment)
    [status, headers.merge("x-worker" => Process.pid.to_s), body]
  end

  private

  def turned(environment)
    number = @lock.synchronize { @number += 1 }
    issue = @first + ((number * 7) % (@last - @first + 1))
    page = PAGES[number % PAGES.size].sub("P", (number % @projects).to_s).sub("N", issue.to_s)
    environment.merge("PATH_INFO" => page, "REQUEST_PATH" => page, "REQUEST_URI" => page)
  end
end
