import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.runtime.minicluster.MiniCluster;
import org.apache.flink.runtime.minicluster.MiniClusterConfiguration;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;

/** Runs the SQL of a file on a Flink cluster in this JVM; its last statement is the job that is measured. */
public final class RunFlink {

    /** Arguments: the file of settings, the file of SQL, slots of the task manager. */
    public static void main(String[] args) throws Exception {
        var settings = new Configuration();
        for (String line : Files.readAllLines(Path.of(args[0]))) {
            int at = line.indexOf(": ");
            settings.setString(line.substring(0, at), line.substring(at + 2));
        }
        var cluster = new MiniCluster(new MiniClusterConfiguration.Builder()
                .setConfiguration(settings)
                .setNumTaskManagers(1)
                .setNumSlotsPerTaskManager(Integer.parseInt(args[2]))
                .build());
        cluster.start();
        var rest = cluster.getRestAddress().get();
        settings.setString("execution.target", "remote");
        settings.setString("rest.address", rest.getHost());
        settings.setString("rest.port", String.valueOf(rest.getPort()));
        var tables = TableEnvironment.create(EnvironmentSettings.newInstance()
                .inStreamingMode()
                .withConfiguration(settings)
                .build());
        String[] statements = Files.readString(Path.of(args[1])).split("\n;;\n");
        for (int number = 0; number < statements.length - 1; number++) {
            tables.executeSql(statements[number]).await();
        }
        var job = tables.executeSql(statements[statements.length - 1]);
        System.out.println("begin " + ProcessHandle.current().pid());
        job.await();
        System.out.println("end");
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }
}
